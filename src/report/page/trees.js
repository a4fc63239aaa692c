// Trees of the call stacks of one recording, or of two recordings that are compared.

function node(parent, frame) {
  return {parent, frame, children: new Map(), depth: parent ? parent.depth + 1 : 0, value: 0, self: 0, sides: []};
}

// Returns the frames of a site, the innermost frame first. Allocation wrappers are folded with
// libraries. If libraries are folded, a stack that has only library frames keeps its outermost
// function.
function shownFrames(site, fold) {
  const own = fold ? site.frames.filter((f) => !f.library && !f.wrapper) : site.frames;
  return own.length ? own : site.frames.slice(-1);
}

// Return the path of a stack from the root of a tree: from the frames, the innermost frame first,
// to the functions below the root. Return null if the stack is not in the tree. `name` is the
// function at the root.
const PATHS = {
  down: (frames) => [...frames].reverse(),
  up: (frames) => frames,
  // Callees and callers of one function. If the function is recursive, its outermost call counts.
  below: (frames, name) => {
    const at = frames.findLastIndex((f) => f.function === name);
    return at < 0 ? null : frames.slice(0, at).reverse();
  },
  above: (frames, name) => {
    const at = frames.findLastIndex((f) => f.function === name);
    return at < 0 ? null : frames.slice(at + 1);
  },
};

// lists: the sites of each recording. A node has one child for each function, regardless of the
// line of the call. If two recordings are compared, the module does not count either, because two
// builds of a program may be in different directories.
function treeOf(lists, fold, path, name) {
  const root = node(null, {function: name || 'all', file: '', line: 0, module: '', library: false});
  const leaves = lists.map((sites) => sites.map((site) => {
    const frames = PATHS[path](shownFrames(site, fold), name);
    return frames && frames.reduce((at, f) => {
      const key = f.function + '\n' + (lists.length > 1 ? '' : f.module);
      if (!at.children.has(key)) {
        at.children.set(key, node(at, f));
      }
      return at.children.get(key);
    }, root);
  }));
  return {root, leaves};
}

// values: the weight of each site, by recording. The width of a node is its value in recording
// `shown`.
function setValues(tree, values, shown) {
  const clear = (n) => {
    n.value = n.self = 0;
    n.sides = values.map(() => 0);
    n.children.forEach(clear);
  };
  clear(tree.root);
  values.forEach((list, side) => tree.leaves[side].forEach((leaf, i) => {
    const value = Math.max(list[i], 0);
    for (let n = leaf; n; n = n.parent) {
      n.sides[side] += value;
      n.value += side === shown ? value : 0;
    }
    if (leaf && side === shown) {
      leaf.self += value;
    }
  }));
}

// Returns functions with sums of each list of values. The sums are over the stacks that contain the
// function, and over the stacks in which the function is the innermost function. A recursive
// function counts once.
function functionTotals(lists, fold, values) {
  const totals = new Map();
  lists.forEach((sites, side) => sites.forEach((site, i) => {
    const value = Math.max(values[side][i], 0);
    const seen = new Set();
    shownFrames(site, fold).forEach((frame, depth) => {
      const t = totals.get(frame.function) || {frame, totals: values.map(() => 0), selves: values.map(() => 0)};
      t.totals[side] += seen.has(frame.function) ? 0 : value;
      t.selves[side] += depth ? 0 : value;
      seen.add(frame.function);
      totals.set(frame.function, t);
    });
  }));
  return totals;
}
