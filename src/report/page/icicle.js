// The stacks of call sites as an icicle: callers above, callees below. The width is the selected
// weight.

const LEAST_WIDTH = 0.0015; // share of the visible width; narrower functions are omitted
const FUNCTIONS_IN_TABLE = 30;

function node(parent, frame) {
  return {parent, frame, children: new Map(), depth: parent ? parent.depth + 1 : 0, value: 0, self: 0};
}

// A node has one child for each function, whatever the line of the call. Allocation wrappers are
// folded with libraries. If libraries are folded, a stack with library frames only keeps its
// outermost function.
function treeOf(sites, fold) {
  const root = node(null, {function: 'all', file: '', line: 0, module: '', library: false});
  const leaves = sites.map((site) => {
    const own = fold ? site.frames.filter((f) => !f.library && !f.wrapper) : site.frames;
    const frames = own.length ? own : site.frames.slice(-1);
    return frames.reduceRight((at, f) => {
      const key = f.function + '\n' + f.module;
      if (!at.children.has(key)) {
        at.children.set(key, node(at, f));
      }
      return at.children.get(key);
    }, root);
  });
  return {root, leaves};
}

function setValues(tree, values) {
  const clear = (n) => {
    n.value = n.self = 0;
    n.children.forEach(clear);
  };
  clear(tree.root);
  tree.leaves.forEach((leaf, i) => {
    leaf.self += Math.max(values[i], 0);
    for (let n = leaf; n; n = n.parent) {
      n.value += Math.max(values[i], 0);
    }
  });
}

// A shade from 0 to 4, which is stable for each function.
function shadeOf(frame) {
  let hash = 0;
  for (const c of frame.function) {
    hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
  }
  return hash % 5;
}

class Icicle {
  constructor(w) {
    this.w = w;
    this.weight = 'peak';
    this.fold = true;
    this.word = '';
    this.box = element('div.icicle', {role: 'tree', 'aria-label': 'Call stacks. Arrow keys move, Enter zooms in, Escape zooms out.',
      onkeydown: (e) => this.key(e)});
    this.detail = element('p.readout', {'aria-live': 'polite'});
    this.found = element('span.readout', {role: 'status'});
    this.note = element('p.note');
    this.tables = element('div');
    this.grow();
    followSelection(() => this.draw());
  }

  get element() {
    const weights = element('fieldset.choice', null, element('legend', null, 'Weight'), Object.entries(WEIGHTS).map(([name, c]) =>
      element('label', null, element('input', {type: 'radio', name: 'weight-' + this.w.name, value: name, checked: name === this.weight,
        onchange: () => {
          this.weight = name;
          this.draw();
        }}), c.text)));
    const search = element('label', null, 'Search ', element('input', {type: 'search', placeholder: 'function or file', 'data-search': 'icicle', oninput: (e) => {
      this.word = e.target.value.toLowerCase();
      this.draw();
    }}));
    const fold = element('label', null, element('input', {type: 'checkbox', checked: this.fold, 'data-fold': '', onchange: (e) => {
      this.fold = e.target.checked;
      this.grow();
      this.draw();
    }}), 'Fold libraries');
    const out = element('button', {type: 'button', onclick: () => this.zoom(this.tree.root)}, 'Zoom out');
    return element('div', null, element('div.tools', null, weights, search, this.found, fold, out), this.note, this.box, this.detail, this.tables);
  }

  grow() {
    this.tree = treeOf(sitesOf(this.w.profile), this.fold);
    this.top = this.focus = this.tree.root;
  }

  matches(n) {
    return this.word && (n.frame.function.toLowerCase().includes(this.word) || n.frame.file.toLowerCase().includes(this.word));
  }

  draw() {
    const values = weigh(this.w, this.weight);
    setValues(this.tree, values);
    this.values = values;
    if (!this.top.value) {
      this.top = this.tree.root;
    }
    this.items = [];
    this.deepest = 0;
    const above = [];
    for (let n = this.top.parent; n; n = n.parent) {
      above.unshift(n);
    }
    above.forEach((n) => this.put(n, 0, 1, true));
    this.place(this.top, 0, 1);
    this.box.style.height = `${(this.deepest + 1) * 1.375}rem`;
    this.box.replaceChildren(...this.items.map((i) => i.element));
    if (!this.items.some((i) => i.node === this.focus)) {
      this.focus = this.top;
    }
    this.rove(this.focus, false);
    this.describe();
    this.find();
    this.tables.replaceChildren(details('Show as table', this.asTable()));
  }

  describe() {
    const shrunk = sum(this.values.filter((v) => v < 0));
    const when = {peak: 'Bytes live when most bytes were live, of the whole run.', end: `Bytes live at the end of ${isSelected() ? cutsText(this.w) : 'the run'}.`,
      allocated: `Bytes allocated in ${isSelected() ? cutsText(this.w) : 'the whole run'}.`, allocs: `Allocations in ${isSelected() ? cutsText(this.w) : 'the whole run'}.`,
      growth: `Bytes live at the end minus those live at the start of ${isSelected() ? cutsText(this.w) : 'the whole run'}.` +
      (shrunk < 0 ? ` Call sites that shrank, by ${bytesText(-shrunk)}, are left out.` : '')};
    this.note.textContent = when[this.weight] + (this.tree.root.value ? '' : ' There are none.');
  }

  place(n, left, width) {
    this.put(n, left, width, false);
    let x = left;
    [...n.children.values()].filter((c) => c.value > 0).sort((a, b) => b.value - a.value).forEach((c) => {
      const part = width * c.value / n.value;
      if (part >= LEAST_WIDTH) {
        this.place(c, x, part);
      }
      x += part;
    });
  }

  put(n, left, width, above) {
    const unit = TEXT_OF[WEIGHTS[this.weight].unit];
    const name = n.frame.function;
    const e = element('div.node' + (n.frame.library ? '.library' : `.shade${shadeOf(n.frame)}`) + (above ? '.above' : '') + (this.matches(n) ? '.match' : ''),
      {role: 'treeitem', tabindex: -1, 'aria-level': n.depth + 1, 'aria-label': `${name}, ${unit(n.value)}, ${percentText(share(n.value, this.tree.root.value))}`,
        'aria-expanded': n.children.size ? 'true' : null, onclick: () => this.zoom(n), onmouseenter: () => this.tell(n), onfocus: () => this.tell(n)},
      element('span', {'aria-hidden': 'true'}, width > 0.02 ? name : ''));
    at(e, left);
    e.style.width = `calc(${100 * width}% - 1px)`;
    e.style.top = `${n.depth * 1.375}rem`;
    this.deepest = Math.max(this.deepest, n.depth);
    this.items.push({node: n, element: e});
  }

  tell(n) {
    const unit = TEXT_OF[WEIGHTS[this.weight].unit];
    const place = placeText(n.frame);
    this.detail.textContent = `${n.frame.function}${place ? ` (${place})` : ''}: ${unit(n.value)}, ` +
      `${percentText(share(n.value, this.tree.root.value))}${n.self && n.self !== n.value ? `; itself ${unit(n.self)}` : ''}`;
  }

  // Sums the stacks that contain a match.
  find() {
    const total = (n) => (this.matches(n) ? n.value : sum([...n.children.values()].map(total)));
    const value = this.word ? total(this.tree.root) : 0;
    this.found.textContent = !this.word ? '' : `${TEXT_OF[WEIGHTS[this.weight].unit](value)}, ${percentText(share(value, this.tree.root.value))}`;
  }

  zoom(n) {
    this.top = this.focus = n;
    this.draw();
    this.rove(n, true);
  }

  // Tab reaches one function; the arrow keys move from there.
  rove(n, focus) {
    this.focus = n;
    this.items.forEach((i) => {
      i.element.tabIndex = i.node === n ? 0 : -1;
      if (i.node === n && focus) {
        i.element.focus();
      }
    });
  }

  key(event) {
    const shown = new Set(this.items.map((i) => i.node));
    const sorted = (n) => [...n.children.values()].filter((c) => shown.has(c)).sort((a, b) => b.value - a.value);
    const siblings = this.focus.parent ? sorted(this.focus.parent) : [this.focus];
    const to = {ArrowUp: this.focus.parent, ArrowDown: sorted(this.focus)[0], ArrowLeft: siblings[siblings.indexOf(this.focus) - 1],
      ArrowRight: siblings[siblings.indexOf(this.focus) + 1], Home: this.tree.root};
    if (event.key === 'Enter' || event.key === ' ' || event.key === '+') {
      this.zoom(this.focus);
    } else if (event.key === 'Escape' || event.key === '0' || event.key === '-') {
      this.zoom(event.key === '-' && this.top.parent ? this.top.parent : this.tree.root);
    } else if (event.key in to) {
      if (to[event.key]) {
        this.rove(to[event.key], true);
      }
    } else {
      return;
    }
    event.preventDefault();
  }

  // Lists functions with their callees. A recursive function counts once.
  asTable() {
    const unit = TEXT_OF[WEIGHTS[this.weight].unit];
    const totals = new Map();
    this.tree.leaves.forEach((leaf, i) => {
      const value = Math.max(this.values[i], 0);
      const seen = new Set();
      for (let n = leaf; value && n.parent; n = n.parent) {
        const key = n.frame.function;
        const t = totals.get(key) || {frame: n.frame, total: 0, self: 0};
        t.total += seen.has(key) ? 0 : value;
        t.self += n === leaf ? value : 0;
        seen.add(key);
        totals.set(key, t);
      }
    });
    const rows = [...totals.values()].sort((a, b) => b.total - a.total).slice(0, FUNCTIONS_IN_TABLE);
    return table('functions', `Functions by what they and their callees account for: ${WEIGHTS[this.weight].text.toLowerCase()}`,
      {function: textColumn('function'), total: 'with callees', self: 'itself', share: 'share', place: textColumn('place')},
      rows.map((t) => [element('span.frame', null, t.frame.function), unit(t.total), unit(t.self), percentText(share(t.total, this.tree.root.value)),
        element('span.frame', null, placeText(t.frame))]));
  }
}

function icicleSection(w, several) {
  return section('icicle', 'Flame graph' + (several ? ': ' + w.name : ''), new Icicle(w).element);
}
