// The page of a report. Whatever comes from the data is set as text, never as HTML.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  // Names are cut to a readable length: nothing compares them.
  const short = (text) => text && cut(text, 80);
  for (const names of ["features", "operands", "negations", "classes"]) data[names] = data[names] && data[names].map(short);
  data.columns.forEach((column) => { column.name = short(column.name); });
  data.target = short(data.target);
  const model = Model(data);
  const { isClassifier } = model;
  const classes = data.classes || [];
  const byId = (id) => document.getElementById(id);
  const state = { tree: data.own, folded: new Set(), selected: 0, focus: 0, cells: null, rows: [], page: 0, isPaper: false };
  // Each tree as fitted, the edited ones that follow it, and which of them is drawn.
  const histories = data.trees.map((one) => ({ steps: [{ tree: one }], at: 0 }));
  const tree = () => histories[state.tree].steps[histories[state.tree].at].tree;
  const canEdit = data.rows !== null && data.forest === null;

  // ---- words and elements ----------------------------------------------------------------------

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "text") element.textContent = value;
      else if (key === "style") Object.assign(element.style, value);
      else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  };

  const number = (value, digits = 4) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text = size >= 1e10 || size < 1e-4
      ? value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e")
      : String(Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size + 1))))));
    return text.replace("-", "−");
  };
  // A number that was rounded is shown as it is, as `export_text` does, another one with a few digits.
  const printed = (value, digits = 4) => {
    const short = Number(value.toPrecision(7));
    return Math.abs(short - value) <= 1e-12 * Math.abs(value) ? number(short, 7) : number(value, digits);
  };
  const count = (n, what) => `${n === null ? "?" : d3.format(",")(Math.round(n * 10) / 10)} ${what}${n === 1 ? "" : "s"}`;
  const leavesText = (n) => count(n, "leaf").replace("leafs", "leaves");
  const percent = (share) => {
    if (share > 0.995 && share < 1) return "> 99 %";
    if (share > 0 && share < 0.005) return "< 1 %";
    return `${Math.round(100 * share)} %`;
  };
  // Shares of a whole in percent that add up, those with the greatest fractions rounded up.
  const percents = (shares) => {
    const found = shares.map((share) => Math.floor(100 * share));
    const order = d3.range(shares.length).sort((a, b) => 100 * (shares[b] - shares[a]) - (found[b] - found[a]));
    order.slice(0, Math.max(0, Math.round(100 * d3.sum(shares)) - d3.sum(found))).forEach((at) => { found[at] += 1; });
    return found.map((one, at) => (one === 0 || (one === 100 && shares[at] < 1) ? percent(shares[at]) : `${one} %`));
  };
  const color = (c) => (data.colors[c] === "#000000" ? "var(--ink)" : data.colors[c]);
  const predictionText = (value) => (isClassifier ? classes[value] : number(value, 7));

  const unbroken = (text) => (text.length > 16 ? text : text.replaceAll(" ", "\u00a0"));
  const operandOf = (j) => unbroken(data.operands[j]);
  // Lines are of what features that are never near 0 are above a number near their mean.
  const centredOf = (j) => {
    const centre = data.centres[j];
    return centre === null ? operandOf(j) : `(${operandOf(j)}\u00a0${centre < 0 ? "+" : "−"}\u00a0${printed(Math.abs(centre))})`;
  };
  const sumText = (weights, features, most, digits = 3, nameOf = operandOf) => {
    const parts = features.slice(0, most).map((j, i) => {
      const size = Math.abs(weights[i]);
      const sign = weights[i] < 0 ? "−\u00a0" : i === 0 ? "" : "+\u00a0";
      return `${sign}${size === 1 ? "" : `${printed(size, digits)}\u00a0`}${nameOf(j)}`;
    });
    if (features.length > most) parts.push(`+\u00a0${features.length - most}\u00a0more`);
    return parts.join(" ") || "0";
  };
  // A split of one feature of 0 and 1 in words; null for others.
  const answerText = (node) => {
    const negation = data.negations[node.f[0]];
    if (node.f.length !== 1 || negation === null) return null;
    const { terms, relation, threshold } = model.inequality(node);
    const [one, zero] = [1, 0].map((x) => (relation === "≤" ? terms[0] * x <= threshold : terms[0] * x >= threshold));
    return one === zero ? null : one ? data.features[node.f[0]] : negation;
  };
  const conditionText = (node, most = Infinity) => {
    const answer = answerText(node);
    if (answer !== null) return answer;
    const { terms, relation, threshold } = model.inequality(node);
    return `${sumText(terms, node.f, most)} ${relation}\u00a0${printed(threshold)}`;
  };
  const leafText = (node) => {
    if (node.points !== undefined) return node.points;
    if (node.z !== undefined) return classes.length > 2 ? "the class of the largest score" : `${classes[1]} where its log-odds are above 0`;
    if (isClassifier) return `${classes[node.l]}${node.cost === undefined ? "" : ` (costs ${number(node.cost, 2)} a row)`}`;
    if (node.b === undefined) return number(node.v[0], 7);
    return `a line of ${count(node.f.length, "term")}`;
  };

  // ---- bars --------------------------------------------------------------------------------------

  const bar = (share, paint = "var(--bar)") => make("span", { class: "track", "aria-hidden": "true" },
    make("span", { style: { left: "0", width: `${100 * share}%`, background: paint } }));
  const signedBar = (value, most) => {
    const width = most > 0 ? (50 * Math.abs(value)) / most : 0;
    return make("span", { class: "track", "aria-hidden": "true" },
      make("span", {
        style: { left: `${value < 0 ? 50 - width : 50}%`, width: `${width}%`, background: value < 0 ? "var(--minus)" : "var(--bar)" },
      }),
      make("span", { class: "middle" }));
  };

  // The heads of columns; those of bars and buttons have none.
  const headRow = (heads) => make("thead", {}, make("tr", {}, ...heads.map((head, i) => (head === "" ? make("td")
    : make("th", { scope: "col", text: head, title: head, class: i === 0 ? "text" : null })))));
  // A name that may be broken at its joints.
  const jointed = (name) => String(name).split(/(?<=[_./-])/).flatMap((part) => [part, make("wbr")]);
  const table = (heads, rows, attributes = {}) => make("table", attributes,
    headRow(heads),
    make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell, i) => {
      if (cell instanceof Node) return make("td", {}, cell);
      return i === 0 ? make("th", { scope: "row" }, ...jointed(cell)) : make("td", { text: cell });
    })))));

  const MOST_SHARES = 8;
  const sharesTable = (shares) => {
    const order = d3.range(shares.length).filter((c) => shares[c] > 0).sort((a, b) => shares[b] - shares[a]);
    const shown = order.slice(0, MOST_SHARES).map((c) => [classes[c], shares[c], color(c)]);
    const others = order.slice(MOST_SHARES);
    if (others.length) shown.push([`${others.length} more`, d3.sum(others, (c) => shares[c])]);
    const texts = percents(shown.map(([, share]) => share));
    return table(["class", "", "share"], shown.map(([name, share, paint], i) => [name, bar(share, paint), texts[i]]), { class: "wide" });
  };

  // ---- the tree ------------------------------------------------------------------------------------

  // Wide pages have the root at the left and children beside it; on narrow ones and on paper it is
  // an outline, children below.
  const CARD = { width: 232, widest: 400, line: 17, rest: 47, gap: 12, across: 54, curve: 38 };
  const LEVEL = CARD.width + CARD.across;
  const OPEN_LEAVES = 10;
  const LINES = { fewest: 5, most: 16, all: 32 }; // of a split; on paper it has all that it needs
  const PANEL = 356; // width of the text beside the drawing, with the gap
  const LEAST_SCALE = 0.8;
  const TALLEST = 1400;
  const NARROW = 700;
  const PAPER = 690; // A4 less its margins
  const PAPER_LEAVES = 40; // a tree of more is folded on paper as on the screen
  const svg = d3.select("#tree");
  const stage = svg.append("g");
  const edges = stage.append("g").attr("aria-hidden", "true");
  const nodesLayer = stage.append("g").attr("role", "tree").attr("aria-labelledby", "tree-title");
  const isOutline = () => state.isPaper || byId("stage").clientWidth < NARROW;
  const zoom = d3.zoom().scaleExtent([0.1, 3])
    .filter((event) => !isOutline() && (event.type === "wheel" ? event.ctrlKey || event.metaKey : !event.button))
    .on("zoom", (event) => stage.attr("transform", event.transform));
  svg.call(zoom).on("dblclick.zoom", null);

  const rowKind = () => (tree().isEdited ? "measured row" : "training row");
  const weightOf = (node) => (node.n === null ? 1 : node.n);
  const isOpen = (node) => !node.isLeaf && !state.folded.has(node.id);

  // Unfold what most rows pass, until enough leaves are open to fill the drawing, and no wider.
  const foldMany = () => {
    const levels = isOutline() ? Infinity : Math.max(3, Math.floor((byId("stage").clientWidth / LEAST_SCALE + CARD.across) / LEVEL));
    const depths = new Map([[0, 1]]);
    state.folded = new Set(tree().nodes.filter((node) => !node.isLeaf).map((node) => node.id));
    const waiting = [tree().nodes[0]];
    for (let open = 1; open < OPEN_LEAVES && waiting.length; open += 1) {
      waiting.sort((a, b) => weightOf(b) - weightOf(a));
      const node = waiting.shift();
      state.folded.delete(node.id);
      node.children.forEach((k) => depths.set(k, depths.get(node.id) + 1));
      waiting.push(...node.children.map((k) => tree().nodes[k]).filter((child) => !child.isLeaf && depths.get(child.id) < levels));
    }
  };

  const unfoldTo = (k) => {
    for (let at = tree().nodes[k].parent; at !== undefined; at = tree().nodes[at].parent) state.folded.delete(at);
  };

  // The width of a word in pixels, each measured once.
  const pen = document.createElement("canvas").getContext("2d");
  const widths = new Map();
  const widthOf = (word, isStrong) => {
    const id = `${isStrong} ${word}`;
    if (!widths.has(id)) {
      pen.font = `${isStrong ? 600 : 400} 13px ${getComputedStyle(document.body).fontFamily}`;
      widths.set(id, pen.measureText(word).width);
    }
    return widths.get(id);
  };
  // Fold a text into lines of at most a width; words that are wider are broken at their joints, if
  // they have some.
  const foldText = (text, width, isStrong) => {
    const found = [];
    let used = Infinity;
    for (let word of text.split(" ")) {
      const longer = used + widthOf(" ", isStrong) + widthOf(word, isStrong);
      if (longer <= width) {
        found[found.length - 1] += ` ${word}`;
        used = longer;
      } else {
        for (; word.length > 1 && widthOf(word, isStrong) > width; word = word.slice(found.at(-1).length)) {
          const part = word.slice(0, Math.max(1, Math.floor((word.length * width) / widthOf(word, isStrong)) - 1));
          found.push(part.slice(0, 1 + part.search(/[_.\/-][^_.\/-]*$/)) || part);
        }
        found.push(word);
        used = widthOf(word, isStrong);
      }
    }
    return found;
  };

  // The lines of a text that has as many terms as there is room for.
  const foldTerms = (textOf, nTerms, width, most, isStrong) => {
    if (state.isPaper) return foldText(textOf(Infinity), width, isStrong);
    for (let n = Math.min(nTerms, 6 * most); ; n -= 1) {
      const found = foldText(textOf(n), width, isStrong);
      if (found.length <= most || n <= 1) return found.slice(0, most);
    }
  };
  // The parts of a leaf's model of classes, with their names.
  // Of a tree on one score they stand below the tree, once.
  const scoresOf = (node) => (node.z === undefined || node.points !== undefined ? [] : classes.length === 2 ? [[`Log-odds of ${classes[1]}:`, node.z[1]]] : node.z.map((part, c) => [`Score of ${classes[c]}:`, part]));
  // The lines of a card, those to be strong first.
  const cardLines = (node, width, most) => {
    if (!node.isLeaf) return { lines: foldTerms((n) => conditionText(node, n), node.f.length, width, most, false), nStrong: 0 };
    const strong = node.b === undefined || node.points !== undefined ? foldText(isClassifier || node.points !== undefined ? leafText(node) : `predicts ${leafText(node)}`, width, true)
      : [];
    const scores = node.z !== undefined ? scoresOf(node) : node.b !== undefined && node.points === undefined ? [["predicts", node]] : [];
    const each = Math.floor(most / scores.length);
    const others = each < 2 && !state.isPaper ? [] : scores.flatMap(([name, part]) => foldTerms((n) => `${name} ${sumOf(part, n)}`, part.f.length, width, each, false));
    return { lines: [...strong, ...others], nStrong: strong.length };
  };

  // The nodes to draw, each with its lines, place and size; and in the order of their numbers.
  let drawn;
  const inOrder = () => drawn.descendants().sort((a, b) => a.data.id - b.data.id);
  const layout = () => {
    const inOutline = isOutline();
    drawn = d3.hierarchy(tree().nodes[0], (node) => (isOpen(node) ? node.children.map((k) => tree().nodes[k]) : null));
    // A frame that is not shown yet has no width.
    const width = state.isPaper ? PAPER : Math.max(byId("stage").clientWidth - 16, 260);
    const indent = Math.min(20, (width - 220) / (drawn.height || 1));
    const roomy = (width - PANEL - 32) / (drawn.height + 1) - CARD.across;
    const wide = Math.min(CARD.widest, Math.max(CARD.width, roomy));
    const nSplits = drawn.descendants().filter((one) => !one.data.isLeaf).length;
    const mostLines = Math.max(LINES.fewest, Math.min(LINES.most, Math.floor(LINES.all / nSplits)));
    drawn.each((one) => {
      one.width = inOutline ? width - one.depth * indent : wide;
      Object.assign(one, cardLines(one.data, one.width - 20, mostLines));
      one.tall = CARD.rest + CARD.line * one.lines.length + (one.data.curve === undefined ? 0 : CARD.curve);
    });
    if (!inOutline) {
      d3.tree().nodeSize([1, wide + CARD.across]).separation((a, b) => (a.tall + b.tall) / 2 + CARD.gap)(drawn);
      drawn.each((one) => Object.assign(one, { left: one.y, top: one.x - one.tall / 2 }));
      return;
    }
    let top = 0;
    drawn.eachBefore((one) => {
      Object.assign(one, { left: one.depth * indent, top });
      top += one.tall + CARD.gap;
    });
  };

  const passed = () => new Set(state.cells === null ? [] : model.path(tree(), model.encode(state.cells)));

  const sideOf = (node) => (node.parent === undefined ? "" : tree().nodes[node.parent].children[0] === node.id ? "yes" : "no");
  const headOf = (node) => {
    const below = node.isLeaf || isOpen(node) ? "" : ` ${leavesText((tree().size[node.id] + 1) / 2)} below`;
    return `${isOutline() && sideOf(node) ? `${sideOf(node)}: ` : ""}[${node.id}]${below}`;
  };
  const rowsOf = (node) => (node.n === null ? "" : count(node.n, "row"));
  // What is written on a card, as speech needs it, and what is drawn.
  const nodeLabel = ({ data: node, lines }) => [
    `${headOf(node)} ${lines.join(" ")} ${rowsOf(node)}`,
    node.isLeaf ? "leaf" : "split", sideOf(node),
    state.cells !== null && passed().has(node.id) ? "on the way of the row" : "",
  ].filter(Boolean).join(", ");

  const drawCard = ({ data: node, width, tall, lines: texts, nStrong }, group) => {
    group.append("rect").attr("class", "card").attr("width", width).attr("height", tall).attr("rx", 6);
    const write = (text, attributes) => {
      const element = group.append("text").text(`${text} `); // apart from the next, where they are read
      Object.entries(attributes).forEach(([name, value]) => element.attr(name, value));
    };
    write(headOf(node), { class: "small", x: 10, y: 16 });
    texts.forEach((text, i) => write(text, { x: 10, y: 34 + CARD.line * i, class: i < nStrong ? "strong" : null }));
    write(rowsOf(node), { class: "small", x: width - 10, y: 16, "text-anchor": "end" });
    const strip = (parts, y, paint, opacity) => {
      let x = 10;
      group.append("rect").attr("class", "bar-back").attr("x", 10).attr("y", y).attr("width", width - 20).attr("height", 6);
      parts.forEach((part, i) => {
        const long = part * (width - 20);
        group.append("rect").attr("x", x).attr("y", y).attr("width", Math.max(0, long - 0.6)).attr("height", 6)
          .style("fill", paint(i)).style("opacity", opacity(i));
        x += long;
      });
    };
    if (node.f.length) {
      const whole = d3.sum(node.influence) || 1;
      strip(node.influence.map((one) => one / whole), tall - 22, () => "var(--bar)", (i) => Math.max(0.2, 1 - 0.22 * i));
    }
    if (isClassifier) strip(node.r || node.v, tall - 13, color, () => 1);
    else {
      const range = d3.extent(tree().nodes, (one) => one.v[0]);
      strip([range[1] > range[0] ? (node.v[0] - range[0]) / (range[1] - range[0]) : 0], tall - 13, () => "var(--good)", () => 0.8);
    }
    if (node.curve !== undefined) {
      const last = d3.max(tree().nodes, (one) => d3.max(one.curve?.[0] || [0]));
      const [x, y] = [linear([0, last]).range([10, width - 10]), linear([0, 1]).range([tall - 30, tall - 30 - CARD.curve + 8])];
      group.append("path").attr("fill", "none").attr("stroke", COLORS[0]).attr("stroke-width", 1.4)
        .attr("d", d3.line((time) => x(time), (_, i) => y(node.curve[1][i])).curve(d3.curveStepAfter)(node.curve[0]));
    }
  };

  const drawTree = () => {
    layout();
    const inOutline = isOutline();
    const onWay = passed();
    const visible = drawn.descendants().map((one) => one.data.id);
    while (!visible.includes(state.selected)) state.selected = tree().nodes[state.selected].parent;
    state.focus = state.selected;
    const whole = weightOf(tree().nodes[0]) || 1;
    const isPassed = (one) => onWay.has(one.data.id);
    const middle = (one) => one.top + one.tall / 2;
    const link = edges.selectAll("g").data(drawn.links()).join((enter) => {
      const group = enter.append("g");
      group.append("path");
      group.append("text").attr("class", "edge-text").attr("text-anchor", "middle");
      return group;
    });
    link.select("path").attr("class", ({ target }) => `edge${isPassed(target) ? " passed" : ""}`)
      .attr("stroke-width", ({ target }) => 1.5 + (inOutline ? 2 : 9) * Math.sqrt(weightOf(target.data) / whole))
      .attr("d", ({ source, target }) => (inOutline ? `M${source.left + 9},${source.top + source.tall}V${middle(target)}H${target.left}`
        : d3.linkHorizontal()({ source: [source.left + source.width, middle(source)], target: [target.left, middle(target)] })));
    link.select("text").attr("x", ({ target }) => target.left - 22).attr("y", ({ source, target }) => middle(target) + (middle(target) < middle(source) ? -8 : 15))
      .text(({ target }) => (inOutline ? "" : sideOf(target.data)));
    nodesLayer.selectAll("g.node").data(inOrder(), (one) => `${state.tree}/${one.data.id}`)
      .join("g").each(function draw(one) {
        const group = d3.select(this);
        group.selectAll("*").remove();
        const node = one.data;
        group.attr("class", `node${onWay.has(node.id) ? " passed" : ""}${node.id === state.selected ? " selected" : ""}`)
          .attr("transform", `translate(${one.left},${one.top})`)
          .attr("data-node", node.id).attr("role", "treeitem").attr("aria-level", one.depth + 1)
          .attr("aria-label", nodeLabel(one)).attr("aria-selected", node.id === state.selected)
          .attr("aria-expanded", node.isLeaf ? null : isOpen(node))
          .attr("tabindex", node.id === state.focus ? 0 : -1)
          .on("click", () => select(node.id));
        drawCard(one, group);
        if (!node.isLeaf) {
          const at = inOutline ? [one.width - 16, one.tall] : [one.width, one.tall / 2];
          const knob = group.append("g").attr("class", "fold").attr("transform", `translate(${at})`)
            .on("click", (event) => { event.stopPropagation(); toggle(node.id); });
          knob.append("title").text(isOpen(node) ? "Fold" : "Unfold");
          knob.append("circle").attr("class", "reach").attr("r", 12);
          knob.append("circle").attr("r", 8);
          knob.append("path").attr("d", isOpen(node) ? "M-4,0H4" : "M-4,0H4M0,-4V4");
        }
      }).order();
  };

  const box = () => byId("tree-box").getBoundingClientRect();
  const fit = () => {
    const all = drawn.descendants();
    const inOutline = isOutline();
    const x1 = d3.max(all, (one) => one.left + one.width);
    const [y0, y1] = [d3.min(all, (one) => one.top), d3.max(all, (one) => one.top + one.tall)];
    const tall = y1 - y0;
    byId("stage").classList.toggle("outline", inOutline);
    ["zoom-in", "zoom-out", "zoom-fit", "drag-help"].forEach((id) => { byId(id).hidden = inOutline; });
    // The text about a node moves below a drawing that would not fit beside it.
    const beside = byId("stage").clientWidth - PANEL - 32;
    byId("stage").classList.toggle("stacked", !inOutline && LEAST_SCALE * x1 > beside);
    const { width } = box();
    const widest = inOutline ? 1 : Math.min(1.1, (width - 32) / x1);
    const height = inOutline ? tall + 24 : Math.min(Math.max(Math.max(widest, LEAST_SCALE) * tall + 32, 200), TALLEST);
    byId("tree-box").style.height = `${height}px`;
    const scale = inOutline ? 1 : Math.min(widest, (height - 24) / tall);
    const used = Math.max(scale, LEAST_SCALE);
    // Where all of it would be too small to read, the root and what is beside it are shown.
    const left = inOutline ? 6 : used > scale ? 12 : (width - used * x1) / 2;
    const middle = used * tall > height ? drawn.top + drawn.tall / 2 : (y0 + y1) / 2;
    svg.call(zoom.transform, d3.zoomIdentity.translate(left, height / 2 - used * middle).scale(used));
  };

  // Move the drawing just as far as it takes to see a node.
  const show = (k) => {
    if (isOutline()) return;
    const one = drawn.descendants().find((candidate) => candidate.data.id === k);
    const now = d3.zoomTransform(svg.node());
    const { width, height } = box();
    const [left, top] = now.apply([one.left, one.top]);
    const [right, bottom] = now.apply([one.left + one.width + 10, one.top + one.tall]);
    const dx = left < 8 ? 8 - left : Math.min(0, width - 8 - right);
    const dy = top < 8 ? 8 - top : Math.min(0, height - 8 - bottom);
    if (dx || dy) svg.call(zoom.translateBy, dx / now.k, dy / now.k);
  };

  // On paper each card of the outline is a picture of its own, so that no page cuts one.
  let foldedOnScreen;
  const drawPaper = () => {
    state.isPaper = true;
    foldedOnScreen = state.folded;
    if (tree().nodes.filter((node) => node.isLeaf).length <= PAPER_LEAVES) state.folded = new Set();
    drawTree();
    const cards = inOrder().map((one) => {
      const [top, height] = [one.top - CARD.gap / 2, one.tall + CARD.gap];
      const picture = d3.create("svg").attr("viewBox", `-2 ${top} ${PAPER + 4} ${height}`);
      const card = nodesLayer.selectAll("g.node").filter((other) => other === one).node();
      edges.selectAll("g").filter(({ source, target }) => source.top < top + height && target.top + target.tall > top)
        .each(function draw() { picture.append(() => this.cloneNode(true)); });
      picture.append(() => card.cloneNode(true)).attr("tabindex", null);
      return picture.node();
    });
    byId("tree-paper").replaceChildren(...cards);
  };
  const leavePaper = () => {
    state.isPaper = false;
    state.folded = foldedOnScreen;
    byId("tree-paper").replaceChildren();
    drawTree();
    fit();
  };

  const focusNode = () => {
    const element = nodesLayer.selectAll("g.node").filter((one) => one.data.id === state.selected).node();
    element.focus({ preventScroll: !isOutline() });
  };
  const select = (k, focus = true) => {
    state.selected = k;
    drawTree();
    drawPanel();
    show(k);
    if (focus) focusNode();
  };
  const toggle = (k) => {
    if (!state.folded.delete(k)) state.folded.add(k);
    select(k);
  };

  const KEYS = {
    ArrowRight: (node) => (node.isLeaf ? null : isOpen(node) ? select(node.children[0]) : toggle(node.id)),
    ArrowLeft: (node) => (isOpen(node) ? toggle(node.id) : node.parent === undefined ? null : select(node.parent)),
    ArrowDown: (node, order) => order[order.indexOf(node.id) + 1],
    ArrowUp: (node, order) => order[order.indexOf(node.id) - 1],
    Home: (_, order) => order[0],
    End: (_, order) => order.at(-1),
    Enter: (node) => (node.isLeaf ? null : canEdit ? focusBench() : toggle(node.id)),
    " ": (node) => (node.isLeaf ? null : toggle(node.id)),
  };
  nodesLayer.on("keydown", (event) => {
    if (!(event.key in KEYS) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const order = inOrder().map((one) => one.data.id);
    const next = KEYS[event.key](tree().nodes[state.selected], order);
    if (next !== undefined && next !== null) select(next);
  });

  // The columns that the tree uses.
  const usedColumns = () => {
    const used = new Set(tree().nodes.flatMap((node) => [node, ...(node.z || [])]).flatMap((part) => part.f));
    return data.columns.filter((column, j) => d3.range(column.first, (data.columns[j + 1] ?? { first: data.features.length }).first).some((at) => used.has(at)));
  };

  // The score that the tree stands on, and what stands for missing cells of the columns that it uses.
  const drawMissing = () => {
    const fills = usedColumns().filter((column) => column.indicator || (column.missing ?? null) !== null)
      .map((column) => `${column.name} = ${column.options === undefined ? printed(column.fill, 6) : column.options[column.missing]}`);
    byId("score").replaceChildren(...tree().score.map((line) => make("p", { class: "inequality", text: line })));
    byId("missing").textContent = fills.length ? `missing: ${fills.join(", ")}` : "";
  };

  const drawLegend = () => {
    const items = isClassifier ? classes.map((name, c) => [color(c), name]) : [["var(--good)", `${data.risk ? "the risk" : "the mean target"}, from the least to the greatest of the tree`]];
    byId("legend").replaceChildren(
      make("li", {}, make("span", { class: "swatch", style: { background: "var(--bar)" } }), "influence of the terms, the strongest first"),
      ...items.slice(0, 30).map(([paint, name]) => make("li", {}, make("span", { class: "swatch", style: { background: paint } }), name)),
    );
  };

  // ---- the node selected -----------------------------------------------------------------------------

  const MOST_TERMS = 12;
  const termsTable = (node, weights, head) => {
    const whole = d3.sum(node.influence) || 1;
    const most = (d3.max(node.influence) || 1) / whole;
    const texts = percents(node.influence.map((one) => one / whole));
    const rows = node.f.map((j, i) => [data.features[j], printed(weights[i]), bar(node.influence[i] / whole / most), texts[i]]);
    const part = (some) => table(["feature", head, "", "influence"], some, { class: "wide" });
    if (rows.length <= MOST_TERMS + 2) return part(rows);
    return make("div", {}, part(rows.slice(0, MOST_TERMS)),
      make("details", {}, make("summary", { text: `${rows.length - MOST_TERMS} weaker terms` }), part(rows.slice(MOST_TERMS))));
  };

  const measuredText = (node) => {
    const found = tree().measures;
    if (found === null) return null;
    const reached = found.reached[node.id];
    const lost = found.lost?.[node.id];
    const how = reached === 0 || lost === undefined ? "" : isClassifier
      ? `, ${number(lost)} of them predicted wrongly`
      : `, with a root mean squared error of ${number(Math.sqrt(lost / reached))}`;
    return make("p", { text: `Of the rows ${tree().isEdited ? "of the page" : "given"}: ${count(reached, "row")}${node.isLeaf ? how : ` pass${reached === 1 ? "es" : ""}`}.` });
  };

  const boundOf = (part, end) => printed(part.log ? Math.exp(end) : end);
  const boundsText = (part) => (part.bounded ? `, within ${boundOf(part, part.lo)} and ${boundOf(part, part.hi)}` : "");
  const sumOf = (part, most = Infinity) => {
    const terms = part.f.length === 0 ? "" : ` ${part.w[0] < 0 ? "" : "+\u00a0"}${sumText(part.w, part.f, most, 3, centredOf)}`;
    const b = part.b + d3.sum(part.f, (j, i) => part.w[i] * data.centres[j]);
    return `${part.log ? "exp(" : ""}${printed(b)}${terms}${part.log ? ")" : ""}`;
  };
  const lineText = (part) => make("p", { class: "inequality", text: `${sumOf(part)}${boundsText(part)}` });

  const drawPanel = () => {
    const node = tree().nodes[state.selected];
    const rows = node.n === null ? "" : ` · ${count(node.n, rowKind())}`;
    const parts = [make("h3", { text: `${node.isLeaf ? "Leaf" : "Split"} [${node.id}]${rows}` })];
    if (node.isLeaf) {
      parts.push(make("p", { class: "outcome" }, "Predicts ", make("strong", { text: node.b === undefined ? leafText(node) : "a line" })));
      if (node.b !== undefined) parts.push(lineText(node), termsTable(node, node.w, "coefficient"));
      scoresOf(node).forEach(([name, part]) => {
        parts.push(make("h3", { text: name }), lineText(part), termsTable(part, part.w, "coefficient"));
      });
    } else {
      parts.push(make("p", { text: `Yes, on to [${node.children[0]}], if` }));
      parts.push(make("p", { class: "inequality", text: conditionText(node) }));
      parts.push(make("p", { text: `No, on to [${node.children[1]}], otherwise.` }));
      parts.push(termsTable(node, model.inequality(node).terms, "weight"));
      parts.push(make("p", {}, make("button", { type: "button", onclick: () => toggle(node.id), text: isOpen(node) ? "Fold this split" : "Unfold this split" })));
    }
    const asFitted = tree().isEdited ? ", as fitted" : "";
    if (isClassifier) {
      parts.push(make("h3", { text: `Class shares of the training rows${asFitted}` }), sharesTable(node.r || node.v));
      if (node.r) parts.push(make("h3", { text: "The same, weighted" }), sharesTable(node.v));
    } else parts.push(make("p", { text: `${data.risk ? "Risk" : data.weighted ? "Weighted mean target" : "Mean target"}${asFitted}: ${number(node.v[0], 7)}` }));
    parts.push(measuredText(node));
    if (node.note !== undefined) parts.push(make("p", { text: `Of the training rows: ${node.note}.` }));
    if (node.curve !== undefined) {
      const [times, alive] = node.curve;
      parts.push(lines("Kaplan and Meier's curve of the training rows", `Survival until ${number(times.at(-1))}`, times, [["share without the event", alive]], { xLabel: "time", yLabel: "", height: 160 }, 0));
    }
    byId("panel").replaceChildren(...parts.filter((part) => part !== null));
    drawShapes();
    if (canEdit) drawBench();
  };

  // ---- choosing a tree ---------------------------------------------------------------------------------

  const figureOf = (one) => (one.measures === null ? null : one.measures.figures[0]);
  const treeText = (one) => {
    const known = [
      `complexity ${one.complexity}: ${leavesText(one.leaves)}, ${count(one.terms, "term")}, depth ${one.depth}`,
      one.quality === null ? null : `${data.measure} in the search ${number(one.quality)}`,
      one.heldOut,
      figureOf(one) === null ? null : `${figureOf(one)[0]} on the rows given ${number(figureOf(one)[1])}`,
      one === model.own ? "the model's own tree" : null,
    ];
    return known.filter((part) => part !== null).join(" · ");
  };

  const chooseTree = (at) => {
    state.tree = at;
    byId("front-slider").value = at;
    byId("front-slider").setAttribute("aria-valuetext", treeText(data.trees[at]));
    byId("front-text").textContent = treeText(data.trees[at]);
    byId("bench-status").textContent = "";
    byId("front-own").disabled = at === data.own;
    foldMany();
    state.selected = 0;
    if (state.cells !== null) unfoldTo(model.path(tree(), model.encode(state.cells)).at(-1));
    drawAll();
  };

  const drawAll = (isSameSize = false) => {
    drawTree();
    drawPanel();
    drawMissing();
    drawSummary();
    if (isSameSize) show(state.selected);
    else fit();
    if (data.forest === null) drawFront();
    else drawMembers();
    drawTrace();
    drawMeasures();
    drawImportances();
    drawRows();
    const { origin } = data.trees[state.tree];
    byId("origin").textContent = origin === null ? "" : `The tree shown descends from “${origin}”.`;
  };

  // ---- a forest ----------------------------------------------------------------------------------------

  const winner = (shares) => shares.indexOf(Math.max(...shares));
  const voted = (x) => (isClassifier ? winner(model.vote(x)) : model.vote(x)[0]);

  const bandText = (least) => {
    if (least === 1) return "all trees";
    const upper = [1, 0.9, 0.75, 0.5].filter((one) => one > least).at(-1);
    return upper === 1 ? `${percent(least)} or more, not all` : `${percent(least)} to ${percent(upper)}`;
  };

  const sharesOfFeatures = (found, most) => {
    const texts = percents(found.map(([, share]) => share));
    return found.slice(0, 15).map(([j, share], i) => [data.features[j], bar(share / most), texts[i]]);
  };

  const drawForest = () => {
    const { vote, importances: found } = data.forest;
    const parts = [];
    if (vote !== null && vote.figures !== undefined) {
      parts.push(make("figure", {}, make("figcaption", { text: `Figures of the vote, ${count(data.rows.total, "row")}` }),
        table(["figure", "vote", "mean of the trees", "baseline"], vote.figures.map(([name, ...values]) => [name, ...values.map((value) => number(value))])),
        make("p", { class: "hint", text: "Trees that were fitted to these rows look better here than they are." })));
    }
    if (vote !== null && vote.bands !== undefined) {
      parts.push(make("figure", {}, make("figcaption", { text: "How many trees say what the forest says" }),
        table(["share of the trees", "", "rows", "predicted rightly"], vote.bands.map((band) => [
          bandText(band[0]), bar(band[1] / data.rows.total), number(band[1]), band[2] === null ? "–" : percent(band[2] / band[1]),
        ]), { class: "wide" })));
    }
    const most = found.length ? found[0][1] : 1;
    const shown = table(["feature", "", "share"], sharesOfFeatures(found, most), { class: "wide" });
    parts.push(make("figure", {}, make("figcaption", { text: "What the forest looks at" }), found.length ? shown : make("p", { text: "Its trees look at nothing: each is one leaf." })));
    byId("forest").replaceChildren(...parts);
  };

  const drawMembers = () => {
    byId("tree-title").textContent = `Tree ${state.tree}, of 0 to ${data.trees.length - 1}`;
    const { vote } = data.forest;
    const figure = figureOf(tree());
    const heads = ["tree", "", "leaves", "terms", "depth", ...(figure === null ? [] : [figure[0]]), ...(vote === null ? [] : [isClassifier ? "agrees with the vote" : "RMS from the vote"])];
    const body = data.trees.map((one, at) => {
      const button = make("button", { type: "button", text: at === state.tree ? "Shown" : "Show", "aria-label": `${at === state.tree ? "Shown:" : "Show"} tree ${at}`, "aria-pressed": at === state.tree ? "true" : "false", onclick: () => chooseTree(at) });
      const texts = [one.leaves, one.terms, one.depth].map(String);
      if (figure !== null) texts.push(number(figureOf(one)[1]));
      if (vote !== null) texts.push(isClassifier ? percent(vote.agreement[at]) : number(vote.agreement[at]));
      return make("tr", { class: at === state.tree ? "chosen" : null }, make("th", { scope: "row", text: String(at) }), make("td", {}, button), ...texts.map((text) => make("td", { text })));
    });
    byId("members").replaceChildren(headRow(heads), make("tbody", {}, ...body));
  };

  const voteText = (x) => {
    const said = voted(x);
    const same = d3.sum(data.trees, (one) => (model.predict(one, x) === said ? 1 : 0));
    return make("p", { class: "outcome", id: "vote" }, "The forest says ", make("strong", { text: predictionText(said) }), isClassifier ? `, and so do ${same} of its ${count(data.trees.length, "tree")}.` : `, the mean of its ${count(data.trees.length, "tree")}.`);
  };

  // ---- charts --------------------------------------------------------------------------------------

  const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8f98", "#b2a400"];

  const chart = (caption, label, { x, y, xLabel, yLabel, width = 440, height = 260, xTicks = 6 }) => {
    const [left, right, top, bottom] = [52, 18, 20, xLabel ? 38 : 22];
    const figure = make("figure", {}, make("figcaption", { text: caption }));
    const root = d3.select(figure).append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", label);
    const scaleX = x.scale.range([left, width - right]);
    const scaleY = y.scale.range([height - bottom, top]);
    root.append("g").attr("transform", `translate(0,${height - bottom})`).call(d3.axisBottom(scaleX).ticks(xTicks, x.format));
    root.append("g").attr("transform", `translate(${left},0)`).call(d3.axisLeft(scaleY).ticks(5, y.format));
    root.append("text").attr("x", (left + width - right) / 2).attr("y", height - 5).attr("text-anchor", "middle").text(xLabel);
    root.append("text").attr("x", 4).attr("y", 11).text(yLabel);
    return { figure, root, scaleX, scaleY };
  };
  const key = (names, paint) => make("ul", { class: "legend" }, ...names.map((name, i) => make("li", {},
    make("span", { class: "swatch", style: { background: paint(i) } }), name)));
  const linear = (domain) => d3.scaleLinear().domain(domain);
  const spanOf = (values, margin = 0.06) => {
    const [low, high] = d3.extent(values.filter((value) => value !== null));
    const edge = high > low ? margin * (high - low) : 0.5 * Math.abs(low) || 0.5;
    return [low - edge, high + edge];
  };

  // What columns add to the sum of a node, in its unit: of the node selected, or of the first with bends.
  const drawShapes = () => {
    const { nodes } = tree();
    const node = nodes[state.selected].shapes ? nodes[state.selected] : nodes.find((one) => one.shapes);
    byId("shapes-section").hidden = node === undefined;
    if (node === undefined) return;
    const scale = node.isLeaf ? 1 : model.inequality(node).scale;
    byId("shapes-title").textContent = `What columns add to ${node.isLeaf ? "leaf" : "split"} [${node.id}]`;
    byId("shapes-sum").textContent = node.isLeaf ? (node.z ? "" : sumOf(node)) : conditionText(node);
    const ofScores = node.shapes[0].adds.length > 1;
    const y = spanOf(node.shapes.flatMap(({ adds }) => adds.flat().map((one) => one / scale)));
    const figures = node.shapes.map(({ column, cells, adds }) => {
      const { name, options } = data.columns[column];
      const x = options === undefined ? linear(d3.extent(cells)) : d3.scalePoint(cells, [0, 1]).padding(0.5);
      const { figure, root, scaleX, scaleY } = chart(name, `What ${name} adds`, { x: { scale: x }, y: { scale: linear(y) }, xLabel: "", yLabel: "adds", width: 300, height: 170, xTicks: 4 });
      root.append("line").attr("x1", scaleX.range()[0]).attr("x2", scaleX.range()[1]).attr("y1", scaleY(0)).attr("y2", scaleY(0)).attr("stroke", "var(--soft)").attr("stroke-dasharray", "4 3");
      adds.forEach((each, c) => {
        const points = each.map((one, i) => [scaleX(cells[i]), scaleY(one / scale)]);
        const paint = ofScores ? color(c) : COLORS[0];
        if (options === undefined) root.append("path").attr("fill", "none").attr("stroke", paint).attr("stroke-width", 2).attr("d", d3.line()(points));
        else root.selectAll(null).data(points).join("circle").attr("cx", (one) => one[0]).attr("cy", (one) => one[1]).attr("r", 4).attr("fill", paint);
      });
      return figure;
    });
    if (ofScores) figures.push(make("figure", {}, key(classes, color)));
    byId("shapes").replaceChildren(...figures);
  };

  const drawFront = () => {
    if (data.trees.length < 2) return;
    const curves = [];
    if (data.trees.some((one) => one.quality !== null)) curves.push([`${data.measure} in the search`, (one) => one.quality]);
    if (figureOf(data.trees[0]) !== null) curves.push([`${figureOf(data.trees[0])[0]} on the rows given`, (one) => figureOf(one)[1]]);
    if (!curves.length) return;
    const values = curves.flatMap(([, get]) => data.trees.map(get)).filter((value) => value !== null);
    const { figure, root, scaleX, scaleY } = chart("Quality and complexity", `Quality of ${data.trees.length} trees against their complexity`, {
      x: { scale: linear(spanOf(data.trees.map((one) => one.complexity))), format: "d" },
      y: { scale: linear(spanOf([data.costs ? d3.min(values) : Math.max(d3.min(values), d3.max(values) - 1), d3.max(values)])) },
      xLabel: "complexity (leaves and terms)", yLabel: data.measure, height: 160,
    });
    curves.forEach(([, get], c) => {
      const points = data.trees.map((one, at) => ({ at, x: scaleX(one.complexity), y: get(one) })).filter((one) => one.y !== null && one.y >= scaleY.domain()[0]);
      root.append("path").attr("fill", "none").attr("stroke", COLORS[c]).attr("stroke-width", 1.3)
        .attr("d", d3.line((one) => one.x, (one) => scaleY(one.y))(points));
      root.selectAll(null).data(points).join("circle").attr("cx", (one) => one.x).attr("cy", (one) => scaleY(one.y))
        .attr("r", (one) => (one.at === state.tree ? 6 : 3.2)).attr("fill", COLORS[c])
        .attr("class", (one) => (one.at === state.tree ? "now" : null)).style("cursor", "pointer")
        .on("click", (_, one) => chooseTree(one.at));
    });
    figure.append(key(curves.map(([name]) => name), (c) => COLORS[c]));
    byId("front-chart").replaceChildren(...figure.childNodes);
  };

  const lines = (caption, label, xs, curves, labels, from = null) => {
    const values = curves.flatMap(([, ys]) => ys);
    const y = linear(from === null ? spanOf(values) : [from, Math.max(spanOf(values)[1], from + 1e-9)]);
    const x = linear(spanOf(xs, 0));
    const { figure, root, scaleX, scaleY } = chart(caption, label, { x: { scale: x }, y: { scale: y }, ...labels });
    curves.forEach(([name, ys, dashed], c) => {
      const points = ys.map((value, i) => [xs[i], value]).filter((one) => one[1] !== null);
      root.append("path").attr("fill", "none").attr("stroke", COLORS[(dashed ? c - 1 : c) % COLORS.length]).attr("stroke-width", dashed ? 1.1 : 1.9)
        .attr("stroke-dasharray", dashed ? "4 3" : null).attr("d", d3.line((one) => scaleX(one[0]), (one) => scaleY(one[1]))(points))
        .append("title").text(name);
    });
    const named = curves.map(([name, , dashed], c) => [name, dashed ? c - 1 : c]);
    figure.append(key(named.map(([name]) => name), (i) => COLORS[named[i][1] % COLORS.length]));
    return figure;
  };

  const drawHistory = () => {
    const history = data.history;
    if (history === null) return;
    byId("history-section").hidden = false;
    const figures = [];
    const ends = (name) => { const ys = history.curves[`${name}_best`]; return `${number(ys[0])} to ${number(ys.at(-1))}`; };
    const pairs = (names) => names.filter((name) => history.curves[`${name}_best`] !== undefined)
      .flatMap((name) => [[`${name}, best`, history.curves[`${name}_best`]], [`${name}, mean (dashed)`, history.curves[`${name}_mean`], true]]);
    const learned = pairs(["fitness", "quality"]);
    if (learned.length) figures.push(lines("Learning curve", `Learning curve: the best fitness goes from ${ends("fitness")}`, history.gen, learned, { xLabel: "generation", yLabel: "fitness, quality" }));
    const grown = pairs(["complexity", "size"]);
    if (grown.length) figures.push(lines("Size of the trees", `The complexity of the best tree goes from ${ends("complexity")}`, history.gen, grown, { xLabel: "generation", yLabel: "leaves and terms; nodes" }, 0));
    const origins = Object.keys(history.origins).sort((a, b) => history.origins[b].at(-1) - history.origins[a].at(-1));
    if (origins.length) figures.push(drawLineage(history, origins));
    byId("history").replaceChildren(...figures);
  };

  const drawLineage = (history, origins) => {
    const { figure, root, scaleX, scaleY } = chart("Lineage of the first trees",
      `Shares of the last population: ${origins.map((name) => `${name} ${percent(history.origins[name].at(-1))}`).join(", ")}`, {
        x: { scale: linear(spanOf(history.gen, 0)) }, y: { scale: linear([0, 1]), format: "%" },
        xLabel: "generation", yLabel: "share of the population",
      });
    const layers = d3.stack().keys(origins).value((i, name) => history.origins[name][i] || 0)(d3.range(history.gen.length));
    root.selectAll(null).data(layers).join("path").attr("fill", (_, i) => COLORS[i % COLORS.length]).attr("opacity", 0.8)
      .attr("d", d3.area((_, i) => scaleX(history.gen[i]), (one) => scaleY(one[0]), (one) => scaleY(one[1])));
    figure.append(key(origins, (i) => COLORS[i % COLORS.length]));
    return figure;
  };

  const drawImportances = () => {
    const found = tree().importances;
    const most = found.length ? found[0][1] : 1;
    const shown = table(["feature", "", "share"], sharesOfFeatures(found, most), { class: "wide" });
    const note = make("p", { class: "hint", text: `${tree().isEdited ? "Of the tree as fitted. " : ""}Shares of the features in lowering the impurity: what each split gains, over its terms by influence (weight times spread).` });
    byId("importances").replaceChildren(note, found.length ? shown : make("p", { text: "It looks at nothing: it is one leaf." }));
  };

  // ---- measures ------------------------------------------------------------------------------------

  const drawMeasures = () => {
    const found = tree().measures;
    if (found === null) return;
    byId("measures-section").hidden = false;
    const figures = make("figure", {}, make("figcaption", { text: `Figures of the tree shown, ${count(tree().isEdited ? X.length : data.rows.total, "row")}` }),
      table(["figure", "tree", "baseline"], found.figures.map(([name, ours, base]) => [name, number(ours), number(base)])),
      make("p", { class: "hint", text: data.risk ? "The baseline gives all rows the same risk." : isClassifier ? `The baseline always says ${data.costs ? `${classes[data.trees[state.tree].nodes[0].l]}, the cheapest class,` : "the class,"} and the shares, of the root.${classes.length > 2 ? " The AUC is that of each class against the others, weighted by its rows." : ""}` : "The baseline always predicts the mean of the root." }));
    const charts = [figures];
    if (found.confusion !== undefined) charts.push(drawConfusion(found.confusion));
    if (found.calibration !== undefined) charts.push(drawCalibration(found.calibration));
    if (!isClassifier && !data.risk) charts.push(drawResiduals());
    byId("measures").replaceChildren(...charts);
  };

  const drawConfusion = (counts) => {
    const head = make("tr", {}, make("td"), ...classes.map((name) => make("th", { scope: "col", text: cut(name, 14), title: name })));
    const rows = counts.map((row, a) => {
      const whole = d3.sum(row) || 1;
      return make("tr", {}, make("th", { scope: "row", text: cut(classes[a], 18), title: classes[a] }), ...row.map((n, b) => make("td", {
        text: String(n), title: `${classes[a]} predicted as ${classes[b]}: ${n}`,
        style: { background: n ? `rgba(var(--heat), ${0.08 + 0.34 * (n / whole)})` : "none", fontWeight: a === b ? "600" : "400" },
      })));
    });
    return make("figure", {}, make("figcaption", { text: "Confusion matrix" }), make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Confusion matrix" },
      make("table", { class: "matrix" }, make("thead", {}, head), make("tbody", {}, ...rows))),
    make("p", { class: "hint", text: "A line for each true class, a column for each class predicted." }));
  };

  const drawCalibration = (bins) => {
    const ofWhat = classes.length === 2 ? `“${classes[1]}”` : "the class predicted";
    const told = bins.map(([mean, share, n]) => `${percent(mean)} said, ${percent(share)} so, ${count(n, "row")}`).join("; ");
    const unit = () => ({ scale: linear([0, 1]), format: "%" });
    const { figure, root, scaleX, scaleY } = chart("Calibration", `Calibration: ${told}`, {
      x: unit(), y: unit(), xLabel: `probability of ${cut(ofWhat, 40)}`, yLabel: "share of rows where it is so",
    });
    root.append("line").attr("x1", scaleX(0)).attr("y1", scaleY(0)).attr("x2", scaleX(1)).attr("y2", scaleY(1)).attr("stroke", "var(--soft)").attr("stroke-dasharray", "4 3");
    const most = d3.max(bins, (bin) => bin[2]);
    root.append("path").attr("fill", "none").attr("stroke", COLORS[0]).attr("stroke-width", 1.4).attr("d", d3.line((bin) => scaleX(bin[0]), (bin) => scaleY(bin[1]))(bins));
    root.selectAll(null).data(bins).join("circle").attr("cx", (bin) => scaleX(bin[0])).attr("cy", (bin) => scaleY(bin[1]))
      .attr("r", (bin) => 3 + 6 * Math.sqrt(bin[2] / most)).attr("fill", COLORS[0]).attr("fill-opacity", 0.75)
      .append("title").text(([mean, share, n]) => `${percent(mean)} said, ${percent(share)} so, ${count(n, "row")}`);
    figure.append(make("p", { class: "hint", text: "Larger dots are more rows; on the dashed line probabilities are what they say." }));
    return figure;
  };

  const drawResiduals = () => {
    const points = data.rows.y.map((y, i) => {
      const predicted = model.predict(tree(), model.encode(cellsOf(i)));
      return { i, predicted, residual: y - predicted };
    });
    const { figure, root, scaleX, scaleY } = chart("Residuals", `Residuals of ${points.length} rows against their predictions`, {
      x: { scale: linear(spanOf(points.map((one) => one.predicted))) }, y: { scale: linear(spanOf(points.map((one) => one.residual))) },
      xLabel: "prediction", yLabel: "target minus prediction",
    });
    root.append("line").attr("x1", scaleX.range()[0]).attr("x2", scaleX.range()[1]).attr("y1", scaleY(0)).attr("y2", scaleY(0)).attr("stroke", "var(--soft)").attr("stroke-dasharray", "4 3");
    root.selectAll(null).data(points).join("circle").attr("cx", (one) => scaleX(one.predicted)).attr("cy", (one) => scaleY(one.residual)).attr("r", 2.6)
      .attr("fill", COLORS[0]).attr("fill-opacity", 0.5).style("cursor", "pointer").on("click", (_, one) => followRow(one.i));
    return figure;
  };

  // ---- rows ----------------------------------------------------------------------------------------

  const cellsOf = (i) => data.rows.cells.map((column) => column[i]);
  const PAGE = 50;

  const drawForm = () => {
    const fields = data.columns.map((column, j) => {
      const id = `cell-${j}`;
      const name = make("label", { for: id, text: column.name, title: column.name });
      if (column.options === undefined) return make("div", {}, name, make("input", { id, inputmode: "decimal", placeholder: "missing" }));
      return make("div", {}, name, make("select", { id }, ...model.choices(column).map(([value, text]) => make("option", { value, text }))));
    });
    byId("row-form").replaceChildren(...fields);
    byId("row-form").addEventListener("submit", (event) => {
      event.preventDefault();
      follow(readForm());
    });
  };

  const fillForm = (cells) => data.columns.forEach((column, j) => {
    const field = byId(`cell-${j}`);
    field.value = cells[j] === null ? "" : String(cells[j]);
    field.removeAttribute("aria-invalid");
  });

  // The cells of the form, or null where some are no numbers; the first of these has the focus then.
  const readForm = () => {
    const cells = data.columns.map((column, j) => {
      const field = byId(`cell-${j}`);
      const cell = model.parse(field.value);
      field.toggleAttribute("aria-invalid", false);
      if (cell === undefined) field.setAttribute("aria-invalid", "true");
      return cell;
    });
    const wrong = cells.indexOf(undefined);
    byId("row-message").textContent = wrong < 0 ? "" : `${data.columns[wrong].name}: type a number, or nothing for a missing value.`;
    if (wrong >= 0) byId(`cell-${wrong}`).focus();
    return wrong < 0 ? cells : null;
  };

  const follow = (cells) => {
    if (cells === null) return;
    state.cells = cells;
    const leaf = model.path(tree(), model.encode(cells)).at(-1);
    unfoldTo(leaf);
    state.selected = leaf;
    drawTree();
    drawPanel();
    show(leaf);
    drawTrace();
  };

  const followRow = (i) => {
    const cells = cellsOf(i);
    fillForm(cells);
    byId("row-message").textContent = "";
    state.row = i;
    follow(cells);
    drawRows();
  };

  const outsideText = (x) => {
    const names = data.features.filter((_, j) => (data.lowest[j] !== null && x[j] < data.lowest[j]) || (data.highest[j] !== null && x[j] > data.highest[j]));
    return names.length ? `No training row had such values: ${names.slice(0, 8).join(", ")}${names.length > 8 ? ", …" : ""}.` : null;
  };

  const MOST_ADDED = 8;
  // A number and what it is compared with, to the same digits.
  const besideText = ({ value, side, threshold, gap }) => {
    const digits = 5 - Math.floor(Math.log10(Math.max(Math.abs(value), Math.abs(threshold)) || 1));
    const text = (one) => number(Number(one.toFixed(Math.min(20, Math.max(0, digits)))), 15);
    const by = side === 0 ? "" : ` by ${Number(text(gap).replace("−", "-")) ? text(gap) : number(gap, 3)}`;
    return `${text(value)}, ${["below", "at", "above"][side + 1]} ${text(threshold)}${by}`;
  };
  // Where a row stands at a node, in words.
  const standingText = (step, node, x) => {
    if (node.isLeaf) {
      return `${number(step.centre)} for the mean row of the leaf, ${number(step.total)} for this one${boundsText(step.part)}${step.label === null ? "" : `, the score of ${classes[step.label]}`}.`;
    }
    if (answerText(node) !== null) return "";
    const found = model.beside(node, x);
    if (node.f.length === 1) return `${besideText(found)}.`;
    return `The sum is ${besideText(found)}; for the mean of the training rows here it is ${number(step.centre * found.unit + found.threshold)}.`;
  };
  const stepItem = (step, x) => {
    const node = tree().nodes[step.node];
    // In the unit of the inequality that is shown, as all that is said of a split.
    const unit = node.isLeaf ? 1 : model.beside(node, x).unit;
    const added = step.terms.map((term) => term.contribution * unit);
    const most = d3.max([...added, node.isLeaf ? 0 : step.total * unit].map(Math.abs)) || 1;
    const rows = step.terms.slice(0, MOST_ADDED).map((term, i) => [data.features[term.feature], number(term.value), signedBar(added[i], most), number(added[i], 3)]);
    if (step.terms.length > MOST_ADDED) {
      const rest = d3.sum(added.slice(MOST_ADDED));
      rows.push([`${step.terms.length - MOST_ADDED} weaker terms`, "", signedBar(rest, Math.max(most, Math.abs(rest))), number(rest, 3)]);
    }
    const parts = node.isLeaf
      ? [make("strong", { text: `Leaf [${node.id}]` })]
      : [make("strong", { text: `[${node.id}]: ${step.goesLeft ? "yes" : "no"}, on to [${node.children[step.goesLeft ? 0 : 1]}]` }), make("p", { class: "hint", text: cut(conditionText(node, MOST_ADDED), 400) })];
    if (step.terms.length) parts.push(make("p", { class: "standing", text: standingText(step, node, x) }));
    if (step.terms.length > 1 || node.isLeaf && step.terms.length) parts.push(table(["feature", "value", "", "adds"], rows, { class: "wide" }));
    return make("li", { "data-step": step.node }, ...parts);
  };

  const drawTrace = () => {
    if (state.cells === null) return;
    const x = model.encode(state.cells);
    const steps = model.explain(tree(), x);
    const leaf = steps.at(-1).node;
    const predicted = model.predict(tree(), x);
    const parts = [make("p", { class: "outcome", "data-leaf": leaf }, `The row ends in leaf [${leaf}], which predicts `, make("strong", { text: predictionText(predicted) }), ".")];
    if (data.forest !== null) parts.unshift(voteText(x));
    const outside = outsideText(x);
    if (outside !== null) parts.push(make("p", { class: "wrong", text: outside }));
    parts.push(make("p", {
      class: "hint",
      text: "A term adds its weight times the difference of its value from the mean of the training rows there.",
    }));
    parts.push(make("ol", { class: "steps" }, ...steps.map((step) => stepItem(step, x))));
    if (isClassifier) {
      const shares = data.forest === null ? model.probabilities(tree(), x) : model.vote(x);
      parts.push(make("h3", { text: data.forest === null ? "Probabilities" : "Probabilities of the forest" }), sharesTable(shares));
    }
    byId("trace").replaceChildren(...parts);
  };

  const cellText = (column, cell) => {
    if (cell === null) return "–";
    if (column.options === undefined) return number(cell, 5);
    return cell < 0 ? "(other)" : column.options[cell];
  };
  const isWrong = (predicted, y) => (isClassifier ? predicted !== y : false);

  const drawRows = () => {
    if (data.rows === null) return;
    const truth = data.rows.y;
    const predictedOf = (x) => (data.forest === null ? model.predict(tree(), x) : voted(x));
    const found = data.rows.numbers.map((_, i) => ({ i, predicted: predictedOf(model.encode(cellsOf(i))) }));
    const wanted = byId("rows-filter").value;
    state.rows = found.filter(({ i, predicted }) => wanted !== "wrong" || isWrong(predicted, truth[i]));
    if (wanted === "worst") state.rows.sort((a, b) => Math.abs(truth[b.i] - b.predicted) - Math.abs(truth[a.i] - a.predicted));
    state.page = Math.min(state.page, Math.max(0, Math.ceil(state.rows.length / PAGE) - 1));
    const some = state.rows.slice(state.page * PAGE, (state.page + 1) * PAGE);
    byId("rows-at").textContent = state.rows.length ? `${state.page * PAGE + 1} to ${state.page * PAGE + some.length} of ${d3.format(",")(state.rows.length)}` : "none";
    byId("rows-back").disabled = state.page === 0;
    byId("rows-next").disabled = (state.page + 1) * PAGE >= state.rows.length;
    const heads = ["row", "", ...(truth === null ? [] : [cut(data.target, 20)]), "predicted", ...data.columns.map((column) => column.name)];
    const body = some.map(({ i, predicted }) => {
      const wrong = truth !== null && isWrong(predicted, truth[i]);
      const texts = [...(truth === null ? [] : [predictionText(truth[i])]), predictionText(predicted), ...data.columns.map((column, j) => cellText(column, data.rows.cells[j][i]))];
      const button = make("button", { type: "button", text: "Follow", "aria-label": `Follow row ${data.rows.numbers[i]}`, onclick: () => followRow(i) });
      return make("tr", { class: i === state.row ? "chosen" : null }, make("th", { scope: "row", text: String(data.rows.numbers[i]) }), make("td", {}, button),
        ...texts.map((text, at) => make("td", { text, title: text, class: wrong && at === 1 ? "wrong" : null })));
    });
    byId("rows").replaceChildren(headRow(heads), make("tbody", {}, ...body));
  };

  const prepareRows = () => {
    if (data.rows === null) return;
    byId("rows-box").hidden = false;
    const { total, numbers, y } = data.rows;
    byId("rows-title").textContent = numbers.length < total ? `${count(numbers.length, "row")} of ${d3.format(",")(total)}, drawn at random` : `Rows`;
    const choices = [["all", "all rows"]];
    if (y !== null) choices.push(isClassifier ? ["wrong", "rows predicted wrongly"] : ["worst", "the greatest errors first"]);
    byId("rows-filter").replaceChildren(...choices.map(([value, text]) => make("option", { value, text })));
    const turn = (step) => () => { state.page = step === 0 ? 0 : state.page + step; drawRows(); };
    byId("rows-filter").addEventListener("change", turn(0));
    byId("rows-back").addEventListener("click", turn(-1));
    byId("rows-next").addEventListener("click", turn(1));
  };

  // ---- edits -----------------------------------------------------------------------------------------

  const X = canEdit ? data.rows.numbers.map((_, i) => model.encode(cellsOf(i))) : [];
  const scoreName = data.costs ? data.measure : isClassifier ? "accuracy" : data.risk ? "concordance" : "R²";
  const seenAt = (step) => (step.seen ??= model.measure(step.tree, X, data.rows.y));
  const nChanged = (from, to, what = "predicted") => d3.sum(seenAt(to)[what], (one, i) => Number(one !== seenAt(from)[what][i]));

  const showStep = (at, what) => {
    const one = histories[state.tree];
    const [from, to, active] = [one.steps[one.at], one.steps[at], document.activeElement];
    Object.assign(from, { folded: [...state.folded], selected: state.selected });
    Object.assign(state, { folded: new Set(to.folded), selected: to.selected });
    one.at = at;
    // Only the status says what changed, not all that is drawn again, too.
    const setLive = (how) => ["panel", "trace"].forEach((id) => byId(id).setAttribute("aria-live", how));
    setLive("off");
    setTimeout(() => setLive("polite"), 500);
    drawAll(from.tree.nodes.length === to.tree.nodes.length);
    if (active.disabled) byId(at ? "bench-undo" : "bench-redo").focus();
    const score = data.rows.y === null ? "" : ` ${scoreName} ${number(seenAt(from).score)} before, ${number(seenAt(to).score)} after;`;
    byId("bench-status").textContent = `${what}:${score} complexity ${from.tree.complexity} before, ${to.tree.complexity} after; of ${count(X.length, "row")} ${nChanged(from, to, "leaves")} change leaf, ${nChanged(from, to)} are predicted otherwise.`;
  };

  // Give a split another threshold, as shown, or prune it where none is given; return whether it was
  // done. A slider that moves on, before it is left, replaces its edit.
  const tryEdit = (k, threshold, movesOn = false) => {
    const one = histories[state.tree];
    one.at -= Number(movesOn);
    const before = one.steps[one.at].tree;
    const made = model.edited(before, k, threshold === undefined ? threshold : threshold * model.inequality(before.nodes[k]).scale);
    const [end, nCut] = [k + before.size[k], before.nodes.length - made.nodes.length];
    const folded = [...state.folded].filter((j) => !nCut || j < k || j >= end).map((j) => (j < end ? j : j - nCut));
    const [from, to] = [before, made].map((some) => number(model.inequality(some.nodes[k]).threshold, 6));
    const what = threshold === undefined ? `Split [${k}] pruned to a leaf that predicts ${leafText(made.nodes[k])}` : `Threshold of [${k}] moved from ${from} to ${to}`;
    const step = { tree: made, k, threshold, what, folded, selected: k };
    const { reached, lost, score } = seenAt(step);
    const empty = threshold === undefined ? [] : model.emptied(seenAt(one.steps[one.at]), seenAt(step));
    if (empty.length) {
      one.at += Number(movesOn);
      drawBench(); // with the threshold that was there before
      byId("bench-status").textContent = `With the threshold ${to} no row of the page reaches ${empty.map((j) => `[${j}]`).join(", ")}: allowed are thresholds with rows on both sides; prune what is below first.`;
      return false;
    }
    made.isEdited = true;
    made.nodes.forEach((node, j) => { node.n = reached[j]; });
    const base = seenAt({ tree: model.edited(before, 0) }).score;
    if (made.measures !== null) made.measures = data.risk ? null : { figures: [[scoreName, score, base]], reached, lost };
    one.steps.splice(one.at + 1, Infinity, step);
    showStep(one.at + 1, what);
    return true;
  };

  // Names of features may have line breaks, which would end a comment.
  const comment = (text) => `  # ${cut(text, 200).replace(/[\p{C}\p{Z}]/gu, " ")}`;
  const pythonText = ({ steps, at }) => {
    const isLast = ({ k, threshold }, i, done) => threshold === undefined || done[i + 1]?.threshold === undefined || done[i + 1].k !== k;
    const lines = steps.slice(1, at + 1).filter(isLast).map(({ tree: made, k, threshold }, i) => {
      const call = threshold === undefined ? `prune(${k})` : `set_threshold(${k}, ${threshold})${comment(conditionText(made.nodes[k], 6))}`;
      return `edited = ${i ? "edited" : "model"}.edit(X, y).${call}`;
    });
    if (state.tree !== data.own) lines.unshift(`model.select_tree("complexity<=${steps[0].tree.complexity}")${comment("the tree of the page")}`);
    return ["# model: the fitted estimator; X, y: its training rows. Each line makes a new model from", "# the one before it, and counts the nodes of that one.", ...lines].join("\n");
  };

  // What the slider of a split ranges over, in the unit of the inequality that is shown.
  const spanOfSplit = (node) => {
    const { threshold, scale } = model.inequality(node);
    const passing = X.filter((x) => model.path(tree(), x).includes(node.id));
    const sums = d3.extent(passing, (x) => d3.sum(node.f, (j, i) => node.w[i] * x[j]) / scale);
    const [low, high] = d3.extent([...sums, threshold, data.trees[state.tree].nodes[node.of].t / scale].filter(Number.isFinite));
    const power = Math.floor(Math.log10((high - low || Math.abs(high) || 1) / 200));
    const [step, tidy] = [10 ** power, (value) => Number(value.toFixed(Math.min(100, Math.max(0, 2 - power))))];
    const field = { min: tidy(Math.floor(low / step) * step), max: tidy(Math.ceil(high / step) * step), step, value: tidy(threshold) };
    return { field, n: passing.length, sums, scale };
  };

  const drawBench = () => {
    const { steps, at } = histories[state.tree];
    const node = tree().nodes[state.selected];
    const isKnown = node.v.every(Number.isFinite);
    byId("tree-title").textContent = at ? `The tree after ${count(at, "edit")}` : "The tree";
    byId("bench-title").textContent = node.isLeaf ? "Try an edit" : `Try an edit of split [${node.id}]`;
    byId("bench-hint").textContent = node.isLeaf ? (tree().nodes.length === 1 ? "The tree is one leaf: there is no split to edit." : "This is a leaf: select a split of the drawing to edit it.")
      : isKnown ? `As a leaf it would predict ${isClassifier ? classes[node.l] : number(node.v[0], 7)}.` : "It cannot be pruned here: the model does not hold what it would predict.";
    byId("bench-prune").disabled = node.isLeaf || !isKnown;
    ["undo", "reset"].forEach((name) => { byId(`bench-${name}`).disabled = at === 0; });
    byId("bench-redo").disabled = at === steps.length - 1;
    byId("bench-move").hidden = node.isLeaf;
    if (!node.isLeaf) {
      const { field, n, sums } = spanOfSplit(node);
      const { terms, relation } = model.inequality(node);
      byId("bench-label").textContent = `Threshold: ${cut(sumText(terms, node.f, 3), 120)} ${relation}`;
      ["number", "range"].forEach((name) => Object.assign(byId(`bench-${name}`), field));
      byId("bench-span").textContent = n ? `The sum lies between ${number(sums[0])} and ${number(sums[1])} for the ${count(n, "row")} of the page here.` : "No row of the page passes this split.";
    }
    const done = steps.slice(0, at + 1).map((step, i) => [i ? `${i}. ${step.what}` : "as fitted", number(seenAt(step).score), String(step.tree.complexity), ...["leaves", "predicted"].map((what) => String(nChanged(steps[0], step, what)))]);
    byId("bench-table").replaceChildren(...table(["edit", scoreName, "complexity", "rows that change leaf", "rows predicted otherwise"], done).childNodes);
    byId("bench-table").parentElement.scrollTop = byId("bench-table").offsetHeight; // to the last edit
    byId("bench-code").textContent = pythonText(histories[state.tree]);
  };

  const focusBench = () => byId(byId("bench-prune").disabled ? "bench-number" : "bench-prune").focus();

  const connectBench = () => {
    ["bench", "edit-help"].forEach((id) => { byId(id).hidden = !canEdit; });
    byId("bench-rows").textContent = count(X.length, "row");
    let movesOn = false;
    const move = ({ target, type }) => {
      const { field, scale } = spanOfSplit(tree().nodes[state.selected]);
      const wanted = target.valueAsNumber;
      const isOther = Number.isFinite(wanted * scale) && wanted !== field.value;
      const isDone = isOther && tryEdit(state.selected, wanted, movesOn);
      if (!isOther) drawBench(); // what was there before
      movesOn = type === "input" && (movesOn || isDone);
    };
    byId("bench-number").addEventListener("change", move);
    byId("bench-range").addEventListener("input", move);
    byId("bench-range").addEventListener("blur", () => { movesOn = false; });
    const goBy = (name, to, what) => byId(`bench-${name}`).addEventListener("click", () => showStep(to(histories[state.tree].at), what));
    goBy("undo", (at) => at - 1, "Undone");
    goBy("redo", (at) => at + 1, "Done again");
    goBy("reset", () => 0, "Reset to the tree as fitted");
    byId("bench-prune").addEventListener("click", () => tryEdit(state.selected));
    document.addEventListener("keydown", (event) => {
      const key = event.key.toLowerCase();
      if (!canEdit || !(event.ctrlKey || event.metaKey) || event.altKey || !"zy".includes(key) || byId("row-form").contains(event.target)) return;
      event.preventDefault();
      byId(`bench-${key === "y" || event.shiftKey ? "redo" : "undo"}`).click();
    });
    byId("bench-copy").addEventListener("click", () => {
      byId("bench-python").open = true;
      window.getSelection().selectAllChildren(byId("bench-code"));
      // The newer way is forbidden to a page in the frame of a notebook.
      byId("bench-status").textContent = document.execCommand("copy") ? "The lines of Python are copied." : "The lines of Python are selected: press Ctrl and C.";
    });
  };

  // ---- start -----------------------------------------------------------------------------------------

  const drawSummary = () => {
    const { forest } = data;
    const one = forest === null ? tree() : forest;
    const hasLines = (some) => some.nodes.some((node) => node.b !== undefined);
    const what = isClassifier ? `one of ${classes.length} classes` : (forest === null ? [one] : data.trees).some(hasLines) ? "a number, by lines in the leaves" : "a number";
    const shown = one === model.own ? "The model’s tree" : one.isEdited ? "The edited tree" : "The tree shown, one of the front,";
    const who = forest === null ? `${shown} predicts ${what}` : `${count(data.trees.length, "tree")} predict ${what}`;
    const size = `${leavesText(one.leaves)}, ${count(one.terms, "term")}${forest === null ? "" : `, ${count(one.nodes, "node")} together`}`;
    byId("summary").textContent = `${who}: ${size}, ${forest === null ? count(usedColumns().length, "column") : `over ${count(data.columns.length, "column")}`}.`;
    if (data.signs !== null) byId("summary").append(` ${data.signs[0].toUpperCase()}${data.signs.slice(1)}.`);
    if ("out of bag" in data.facts) byId("summary").append(` Out of bag: ${data.facts["out of bag"]}.`);
  };

  const drawHead = () => {
    const { forest } = data;
    const kind = forest !== null ? "A forest" : model.own.leaves > 1 ? "A decision tree" : "A model of one leaf";
    byId("title").textContent = `${kind} for ${data.target}`;
    if (forest !== null) byId("rules-title").textContent = "The trees as rules";
    byId("notes").replaceChildren(...data.notes.map((note) => make("li", { text: note })));
    byId("version").textContent = data.version;
    byId("facts").replaceChildren(...Object.entries(data.facts).map(([name, fact]) => make("p", {}, make("strong", { text: `${name}: ` }), fact)));
    byId("rules").textContent = data.rules;
  };

  const connect = () => {
    byId("zoom-in").addEventListener("click", () => svg.call(zoom.scaleBy, 1.3));
    byId("zoom-out").addEventListener("click", () => svg.call(zoom.scaleBy, 1 / 1.3));
    byId("zoom-fit").addEventListener("click", fit);
    byId("unfold").addEventListener("click", () => { state.folded.clear(); drawTree(); fit(); });
    byId("fold").addEventListener("click", () => { foldMany(); drawTree(); drawPanel(); fit(); });
    byId("front-own").addEventListener("click", () => chooseTree(data.own));
    let width = byId("stage").clientWidth;
    new ResizeObserver(([{ target }]) => {
      if (state.isPaper || target.clientWidth === width) return;
      width = target.clientWidth;
      drawTree();
      fit();
    }).observe(byId("stage"));
    window.addEventListener("beforeprint", drawPaper);
    window.addEventListener("afterprint", leavePaper);
    const slider = byId("front-slider");
    slider.max = data.trees.length - 1;
    slider.addEventListener("input", () => chooseTree(Number(slider.value)));
    byId("front-section").hidden = data.forest !== null || data.trees.length < 2;
    byId("forest-section").hidden = data.forest === null;
  };

  drawHead();
  drawLegend();
  connect();
  connectBench();
  drawForm();
  prepareRows();
  drawHistory();
  if (data.forest !== null) drawForest();
  chooseTree(data.own);
  if (data.rows !== null) fillForm(cellsOf(0));
  // For tests, and for scripts of a page that this one is part of.
  window.evotreeReport = { data, model, followRow };
})();
