// What the trees of the page do with a row: the twin of evotree's own encoder, router and
// predictions, in doubles. Terms are added in the order of the features, as exported code does.
"use strict";

const Model = (data) => {
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const isClassifier = data.classes !== null;
  const own = data.trees[data.own];

  const prepare = (tree) => {
    tree.nodes.forEach((node, k) => {
      node.id = k;
      node.of = node.of ?? k; // its number in the tree as fitted
      node.isLeaf = tree.size[k] === 1;
      node.children = node.isLeaf ? [] : [k + 1, k + 1 + tree.size[k + 1]];
      for (const part of [node, ...(node.z || [])]) {
        part.f = part.f || [];
        part.w = part.w || [];
        part.order = part.f.map((_, i) => i).sort((a, b) => part.f[a] - part.f[b]);
        part.c = part.c || part.f.map((j) => data.means[j]);
        part.influence = part.f.map((j, i) => Math.abs(part.w[i]) * data.spread[j]);
      }
    });
    tree.nodes.forEach((node, k) => {
      for (const child of node.children) tree.nodes[child].parent = k;
    });
    return tree;
  };
  data.trees.forEach(prepare);

  // The cell that a text of the form stands for; undefined where it is none.
  const parse = (text) => {
    const trimmed = text.trim();
    if (trimmed === "") return null;
    const value = NUMBER.test(trimmed) ? Number(trimmed) : NaN;
    return Number.isFinite(value) ? value : undefined;
  };

  // What the form offers for a column of categories: the value of each option, and its text. The
  // level of missing cells has the name of no other one.
  const choices = (column) => [
    ["", "(missing)"],
    ...column.options.map((text, at) => [String(at), text]).filter((_, at) => at !== column.missing),
    ["-1", "(any other)"],
  ];

  const bent = ({ kind, knot }, number) => {
    if (kind === "log") return Math.log(Math.max(number, knot));
    return Math.max(kind === "above" ? number - knot : knot - number, 0);
  };

  // Cells, one a column: a number, the position of an option (-1 for any other), or null.
  const encode = (cells) => {
    const features = new Array(data.features.length).fill(0);
    data.columns.forEach((column, j) => {
      const cell = cells[j];
      if (column.options === undefined) {
        const number = cell === null ? column.fill : cell;
        features[column.first] = number;
        column.bends.forEach((bend, at) => {
          features[column.first + 1 + at] = bent(bend, number);
        });
        if (column.indicator) features[column.first + 1 + column.bends.length] = cell === null ? 1 : 0;
        return;
      }
      const level = cell === null ? column.missing : cell;
      if (level !== null && level >= 0 && level < column.options.length) {
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

  // A sum that overflows to both sides, which is no number, is the upper bound.
  const line = (part, x) => {
    const total = sum(part, x, part.b);
    const bounded = total < part.lo ? part.lo : total <= part.hi ? total : part.hi;
    return part.log ? Math.exp(bounded) : bounded;
  };

  // The position of the largest number, the first of equals.
  const largest = (numbers) => numbers.indexOf(Math.max(...numbers));

  // The number that a leaf predicts for a row, or the position of its class.
  const predict = (tree, x) => {
    const leaf = tree.nodes[apply(tree, x)];
    if (leaf.z !== undefined) return largest(leaf.z.map((part) => line(part, x)));
    if (isClassifier) return leaf.l;
    return leaf.b === undefined ? leaf.v[0] : line(leaf, x);
  };

  const probabilities = (tree, x) => {
    const leaf = tree.nodes[apply(tree, x)];
    const { z } = leaf;
    if (z !== undefined) {
      const scores = z.map((part) => line(part, x));
      const odds = scores.map((score) => Math.exp(score - Math.max(...scores)));
      return odds.map((one) => one / odds.reduce((a, b) => a + b, 0));
    }
    if (!tree.soft) return leaf.v.slice();
    const found = data.classes.map(() => 0);
    const reach = new Array(tree.nodes.length).fill(0);
    reach[0] = 1;
    tree.nodes.forEach((node, k) => {
      if (node.isLeaf) {
        node.shares.forEach((share, c) => { found[c] += reach[k] * share; });
        return;
      }
      const above = sum(node, x, 0) - node.t;
      const odds = node.slope * (Number.isNaN(above) ? Infinity : above);
      const right = 1 / (1 + Math.exp(-(odds + node.intercept)));
      reach[node.children[1]] = reach[k] * right;
      reach[node.children[0]] = reach[k] - reach[node.children[1]];
    });
    const label = leaf.m ?? leaf.l; // the most frequent class, another one than the label's
    const highest = Math.max(...found.filter((_, c) => c !== label), -1);
    found[label] += Math.max(highest + 1e-6 - found[label], 0);
    const whole = found.reduce((a, b) => a + b, 0);
    return found.map((one) => one / whole);
  };

  // The score of a class; of two classes its log-odds, which the second part has of the second.
  const speaking = (z, at) => {
    if (z.length > 2 || at === 1) return z[at];
    const [, { w, b, lo, hi }] = z;
    return { ...z[1], w: w.map((one) => -one), b: -b, lo: -hi, hi: -lo };
  };

  // What each term adds to each decision on the way of a row, as `explain` tells it.
  // Of scores of classes it is that of the predicted class, of two classes its log-odds.
  const explain = (tree, x) => path(tree, x).map((k, step, nodes) => {
    const node = tree.nodes[k];
    const at = node.z === undefined ? null : predict(tree, x);
    const part = at === null ? node : speaking(node.z, at);
    const scale = node.isLeaf ? 1 : node.s;
    const constant = node.isLeaf ? (part.b === undefined ? 0 : part.b) : -node.t;
    const terms = part.f.map((j, i) => ({
      feature: j,
      value: x[j],
      weight: part.w[i],
      contribution: (part.w[i] * (x[j] - part.c[i])) / scale,
    }));
    const centre = (part.f.reduce((s, _, i) => s + part.w[i] * part.c[i], 0) + constant) / scale;
    const total = terms.reduce((s, term) => s + term.contribution, centre);
    const goesLeft = !node.isLeaf && nodes[step + 1] === node.children[0];
    return { node: k, terms, centre, total, goesLeft, part, label: at };
  });

  // The inequality of a split for readers: divided by its most influential weight.
  const inequality = (node) => {
    const first = node.w.length ? node.w[0] : 1;
    const scaled = [...node.w.map((w) => w / first), node.t / first];
    const isFine = scaled.every(Number.isFinite) && scaled.slice(0, -1).every((w) => w !== 0);
    if (!isFine) return { terms: node.w, relation: "≤", threshold: node.t, scale: 1 };
    return { terms: scaled.slice(0, -1), relation: first > 0 ? "≤" : "≥", threshold: scaled.at(-1), scale: first };
  };

  // The mean of what all trees of a forest predict for a row: probabilities, or one number.
  const vote = (x) => {
    const each = data.trees.map((tree) => (isClassifier ? probabilities(tree, x) : [predict(tree, x)]));
    return each[0].map((_, c) => each.reduce((total, one) => total + one[c], 0) / each.length);
  };

  // Where the sum of a split stands beside its threshold, both as the inequality shows them; and
  // the unit: what a spread of the projection is there.
  const beside = (node, x) => {
    const { terms, threshold, scale } = inequality(node);
    const total = sum(node, x, 0);
    const value = terms.length === 1 && terms[0] === 1 ? x[node.f[0]] : total / scale;
    const side = Math.sign((total - node.t) * scale);
    return { value, threshold, side, gap: Math.abs(value - threshold), unit: node.s / scale };
  };

  // What a tree does with encoded rows: their predictions and leaves, as those are counted in the tree
  // as fitted; how many pass each node, and what they
  // lose there; mean cost a row, accuracy or R², null where there are no targets.
  const measure = (tree, rows, y) => {
    const [reached, lost] = [tree.nodes.map(() => 0), tree.nodes.map(() => 0)];
    const predicted = rows.map((x) => predict(tree, x));
    const leaves = rows.map((x) => tree.nodes[apply(tree, x)].of);
    rows.forEach((x, i) => {
      const loss = y === null ? 0 : isClassifier ? Number(predicted[i] !== y[i]) : (y[i] - predicted[i]) ** 2;
      path(tree, x).forEach((k) => { reached[k] += 1; lost[k] += loss; });
    });
    const mean = (y || []).reduce((total, one) => total + one / rows.length, 0);
    const whole = isClassifier ? rows.length : (y || []).reduce((total, one) => total + (one - mean) ** 2, 0);
    // What a row costs by its error, and by what is asked on its way.
    const paid = (x, i) => data.costs[y[i]][predicted[i]] + tree.nodes[apply(tree, x)].asked;
    const score = y === null || whole === 0 ? null : data.costs ? rows.reduce((total, x, i) => total + paid(x, i) / rows.length, 0) : 1 - lost[0] / whole;
    return { predicted, leaves, reached, lost, score };
  };

  // The nodes that rows reach no more after a threshold has moved, as `edit` refuses them.
  const emptied = (before, after) => before.reached.map((_, k) => k).filter((k) => before.reached[k] > 0 && after.reached[k] === 0);

  // The same tree with another threshold at a split, or, where none is given, with a leaf for it.
  const edited = (tree, k, threshold) => {
    const end = threshold === undefined ? k + tree.size[k] : k + 1;
    const isKept = (_, j) => j <= k || j >= end;
    const nodes = tree.nodes.filter(isKept).map((node) => ({ ...node }));
    const { n, v, l, r, of, cost, asked } = nodes[k];
    nodes[k] = threshold === undefined ? { n, v, l, r, of, cost, asked } : { ...nodes[k], t: threshold };
    const nCut = tree.nodes.length - nodes.length;
    const size = tree.size.map((one, j) => (j <= k && j + one >= end ? one - nCut : one)).filter(isKept);
    const leaves = (nodes.length + 1) / 2;
    const parts = nodes.flatMap((node) => node.z || [node]);
    const terms = parts.reduce((total, part) => total + (part.f || []).length, 0);
    return prepare({ ...tree, nodes, size, leaves, terms, complexity: leaves + terms, soft: false });
  };

  return { isClassifier, own, parse, choices, encode, path, apply, predict, probabilities, vote, explain, inequality, beside, measure, emptied, edited };
};
