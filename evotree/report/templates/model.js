// What the trees of the page do with a row: the twin of evotree's own encoder, router and
// predictions, in doubles. Terms are added in the order of the features, as exported code does.
"use strict";

const Model = (data) => {
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const isClassifier = data.classes !== null;
  const own = data.trees[data.own];

  for (const tree of data.trees) {
    tree.nodes.forEach((node, k) => {
      node.id = k;
      node.isLeaf = tree.size[k] === 1;
      node.children = node.isLeaf ? [] : [k + 1, k + 1 + tree.size[k + 1]];
      node.f = node.f || [];
      node.w = node.w || [];
      node.order = node.f.map((_, i) => i).sort((a, b) => node.f[a] - node.f[b]);
      node.c = node.c || node.f.map((j) => data.means[j]);
      node.influence = node.f.map((j, i) => Math.abs(node.w[i]) * data.spread[j]);
    });
    tree.nodes.forEach((node, k) => {
      for (const child of node.children) tree.nodes[child].parent = k;
    });
  }

  // The cell that a text of the form stands for; undefined where it is none.
  const parse = (text) => {
    const trimmed = text.trim();
    if (trimmed === "") return null;
    const value = NUMBER.test(trimmed) ? Number(trimmed) : NaN;
    return Number.isFinite(value) ? value : undefined;
  };

  // Cells, one a column: a number, the position of an option (-1 for any other), or null.
  const encode = (cells) => {
    const features = new Array(data.features.length).fill(0);
    data.columns.forEach((column, j) => {
      const cell = cells[j];
      if (column.options === undefined) {
        features[column.first] = cell === null ? column.fill : cell;
        if (column.indicator) features[column.first + 1] = cell === null ? 1 : 0;
        return;
      }
      const level = cell === null ? column.missing : cell;
      if (level !== null && level >= 0 && level < column.n_levels) {
        features[column.first + level] = 1;
      }
    });
    return features;
  };

  const sum = (node, x, start) => {
    let total = start;
    for (const i of node.order) total += node.w[i] * x[node.f[i]];
    return total;
  };

  const path = (tree, x) => {
    const nodes = [0];
    let node = tree.nodes[0];
    while (!node.isLeaf) {
      node = tree.nodes[node.children[sum(node, x, 0) <= node.t ? 0 : 1]];
      nodes.push(node.id);
    }
    return nodes;
  };

  const apply = (tree, x) => path(tree, x).at(-1);

  // The number that a leaf predicts for a row, or the position of its class.
  const predict = (tree, x) => {
    const leaf = tree.nodes[apply(tree, x)];
    if (isClassifier) return leaf.l;
    if (leaf.b === undefined) return leaf.v[0];
    return Math.min(Math.max(sum(leaf, x, leaf.b), leaf.lo), leaf.hi);
  };

  const probabilities = (tree, x) => {
    const leaf = apply(tree, x);
    if (tree !== own || data.sides === null) return tree.nodes[leaf].v.slice();
    const found = data.classes.map(() => 0);
    const reach = new Array(tree.nodes.length).fill(0);
    reach[0] = 1;
    tree.nodes.forEach((node, k) => {
      if (node.isLeaf) {
        data.sides.shares[k].forEach((share, c) => { found[c] += reach[k] * share; });
        return;
      }
      const above = sum(node, x, 0) - node.t;
      const odds = data.sides.slopes[k] * (Number.isNaN(above) ? Infinity : above);
      const right = 1 / (1 + Math.exp(-(odds + data.sides.intercepts[k])));
      reach[node.children[1]] = reach[k] * right;
      reach[node.children[0]] = reach[k] - reach[node.children[1]];
    });
    const label = data.sides.labels[leaf];
    const highest = Math.max(...found.filter((_, c) => c !== label), -1);
    found[label] += Math.max(highest + 1e-6 - found[label], 0);
    const whole = found.reduce((a, b) => a + b, 0);
    return found.map((one) => one / whole);
  };

  // What each term adds to each decision on the way of a row, as `explain` tells it.
  const explain = (tree, x) => path(tree, x).map((k, step, nodes) => {
    const node = tree.nodes[k];
    const scale = node.isLeaf ? 1 : node.s;
    const constant = node.isLeaf ? (node.b === undefined ? 0 : node.b) : -node.t;
    const terms = node.f.map((j, i) => ({
      feature: j,
      value: x[j],
      weight: node.w[i],
      contribution: (node.w[i] * (x[j] - node.c[i])) / scale,
    }));
    const centre = (node.f.reduce((s, _, i) => s + node.w[i] * node.c[i], 0) + constant) / scale;
    const total = terms.reduce((s, term) => s + term.contribution, centre);
    const goesLeft = !node.isLeaf && nodes[step + 1] === node.children[0];
    return { node: k, terms, centre, total, goesLeft };
  });

  // The inequality of a split for readers: divided by its most influential weight.
  const inequality = (node) => {
    const first = node.w.length ? node.w[0] : 1;
    const scaled = [...node.w.map((w) => w / first), node.t / first];
    const isFine = scaled.every(Number.isFinite) && scaled.slice(0, -1).every((w) => w !== 0);
    if (!isFine) return { terms: node.w, relation: "≤", threshold: node.t };
    return { terms: scaled.slice(0, -1), relation: first > 0 ? "≤" : "≥", threshold: scaled.at(-1) };
  };

  // The mean of what all trees of a forest predict for a row: probabilities, or one number.
  const vote = (x) => {
    const each = data.trees.map((tree) => (isClassifier ? probabilities(tree, x) : [predict(tree, x)]));
    return each[0].map((_, c) => each.reduce((total, one) => total + one[c], 0) / each.length);
  };

  return { isClassifier, own, parse, encode, path, apply, predict, probabilities, vote, explain, inequality };
};
