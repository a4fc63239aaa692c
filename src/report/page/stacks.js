// The section of call stacks. Each tab has a tree of the stacks and a table of functions. Two
// recordings are compared in the same trees.

const FUNCTIONS_IN_TABLE = 30;
const FUNCTIONS_TO_CHOOSE = 500;
const CHANGES = [0.02, 0.2]; // minimum change of a function for each shade, as a share

const TABS = {
  down: 'Top-down',
  up: 'Bottom-up',
  function: 'Callers and callees',
  temporary: 'Temporaries',
};

class Stacks {
  // sides: the workload, or two workloads to compare.
  constructor(sides, number) {
    this.sides = sides;
    this.lists = sides.map((w) => sitesOf(w.profile));
    this.id = `stacks-${number}`;
    this.tab = 'down';
    this.weight = 'peak';
    this.shown = sides.length - 1; // the recording whose values are the widths
    this.fold = true;
    this.word = '';
    this.name = null; // function of the tab with callers and callees
    this.main = new Icicle(this, 'Call stacks');
    this.callers = new Icicle(this, 'Callers');
    this.callees = new Icicle(this, 'Callees');
    this.found = element('span.readout', {role: 'status'});
    this.note = element('p.note');
    this.tables = element('div');
    this.trees = element('div');
    this.tabs = new Map();
    this.grow();
    followSelection(() => this.draw());
  }

  get element() {
    const weights = this.weights = element('fieldset.choice', null, element('legend', null, 'Weight'), Object.entries(WEIGHTS).filter(([name]) => name !== 'temporary')
      .map(([name, c]) => this.radio('weight', name, c.text, name === this.weight, () => {
        this.weight = name;
      })));
    const sides = this.sides.length < 2 ? null : element('fieldset.choice', null, element('legend', null, 'Widths'), this.sides.map((w, i) =>
      this.radio('side', String(i), w.name, i === this.shown, () => {
        this.shown = i;
      })));
    const search = element('label', null, 'Search ', element('input', {type: 'search', placeholder: 'function or file', 'data-search': 'icicle', oninput: (e) => {
      this.word = e.target.value.toLowerCase();
      this.draw();
    }}));
    const fold = element('label', null, element('input', {type: 'checkbox', checked: this.fold, 'data-fold': '', onchange: (e) => {
      this.fold = e.target.checked;
      this.grow();
      this.draw();
    }}), 'Fold libraries');
    const out = element('button', {type: 'button', onclick: () => this.icicles().forEach((i) => i.zoom(i.tree.root))}, 'Zoom out');
    this.chosen = element('select', {'data-choose': 'function', onchange: (e) => this.choose(e.target.value)});
    this.choice = element('label', null, 'Function ', this.chosen);
    const panel = element('div', {id: this.id, role: 'tabpanel', 'aria-label': 'Call stacks'}, element('div.tools', null, this.choice, weights, sides, search,
      this.found, fold, out), this.note, this.trees, this.tables);
    this.draw();
    return element('div', null, this.tabList(), panel);
  }

  radio(what, value, text, checked, set) {
    return element('label', null, element('input', {type: 'radio', name: `${what}-${this.id}`, value, checked, onchange: () => {
      set();
      this.draw();
    }}), text);
  }

  tabList() {
    const names = Object.keys(TABS).filter((name) => name !== 'temporary' || this.sides.every((w) => w.profile.short_lived_blocks));
    const list = element('div.tabs', {role: 'tablist', 'aria-label': 'Call stacks', onkeydown: (e) => {
      const to = {ArrowLeft: -1, ArrowRight: 1}[e.key];
      if (to) {
        this.open(names[(names.indexOf(this.tab) + to + names.length) % names.length]);
        this.tabs.get(this.tab).focus();
        e.preventDefault();
      }
    }}, names.map((name) => {
      const tab = element('button', {type: 'button', role: 'tab', 'data-tab': name, 'aria-controls': this.id, onclick: () => this.open(name)}, TABS[name]);
      this.tabs.set(name, tab);
      return tab;
    }));
    this.markTab();
    return list;
  }

  markTab() {
    this.tabs.forEach((tab, name) => {
      tab.setAttribute('aria-selected', String(name === this.tab));
      tab.tabIndex = name === this.tab ? 0 : -1;
    });
  }

  open(tab) {
    this.tab = tab;
    this.markTab();
    this.grow();
    this.draw();
  }

  // Shows the callers and callees of a function.
  choose(name) {
    this.name = name;
    this.open('function');
  }

  icicles() {
    return this.tab === 'function' ? [this.callers, this.callees] : [this.main];
  }

  key() {
    return this.tab === 'temporary' ? 'temporary' : this.weight;
  }

  unit(v) {
    return TEXT_OF[WEIGHTS[this.key()].unit](v);
  }

  weigh(weight) {
    return this.sides.map((w) => weigh(w, weight));
  }

  // Returns the heaviest functions, in descending order of the bytes that the functions allocate
  // themselves.
  heaviest() {
    const {shown} = this;
    return [...functionTotals(this.lists, this.fold, this.values).values()].sort((a, b) => b.selves[shown] - a.selves[shown] || b.totals[shown] - a.totals[shown])
      .slice(0, FUNCTIONS_TO_CHOOSE).map((t) => t.frame.function);
  }

  grow() {
    const tree = (path) => treeOf(this.lists, this.fold, path, this.name);
    this.values = this.weigh(this.key());
    if (this.tab === 'function') {
      const names = this.heaviest();
      this.name = this.name || names[0];
      this.names = names.includes(this.name) ? names : [this.name, ...names];
      this.grown = ['above', 'below'].map(tree);
    } else {
      this.grown = [treeOf(this.lists, this.fold, this.tab === 'up' ? 'up' : 'down', null)];
    }
  }

  isMatch(frame) {
    return Boolean(this.word) && (frame.function.toLowerCase().includes(this.word) || frame.file.toLowerCase().includes(this.word));
  }

  // Returns the change of a node as a share of the larger value.
  change(n) {
    const [before, after] = n.sides;
    return (after - before) / Math.max(after, before, 1);
  }

  classOf(n) {
    if (this.sides.length < 2) {
      return n.frame.library ? '.library' : `.shade${shadeOf(n.frame)}`;
    }
    const change = this.change(n);
    const level = CHANGES.filter((c) => Math.abs(change) >= c).length;
    return !level ? '.same' : `.${change > 0 ? 'grew' : 'shrank'}${level}`;
  }

  textOf(n) {
    const part = percentText(share(n.value, this.all));
    if (this.sides.length > 1) {
      const [before, after] = n.sides;
      return `${this.unit(before)} in the first recording, ${this.unit(after)} in the second: ${changeText(before, after, (v) => this.unit(v))}`;
    }
    const own = this.tab !== 'up' && n.self && n.self !== n.value ? `; itself ${this.unit(n.self)}` : '';
    return `${this.unit(n.value)}, ${part}${own}`;
  }

  draw() {
    if (!this.chosen) {
      return;
    }
    this.values = this.weigh(this.key());
    this.all = sum(this.values[this.shown].filter((v) => v > 0));
    this.grown.forEach((tree) => setValues(tree, this.values, this.shown));
    this.choice.hidden = this.tab !== 'function';
    this.weights.hidden = this.tab === 'temporary';
    if (this.tab === 'function') {
      this.chosen.replaceChildren(...this.names.map((name) => element('option', {value: name, selected: name === this.name}, name)));
    }
    const icicles = this.icicles();
    icicles.forEach((icicle, i) => icicle.show(this.grown[i]));
    this.trees.replaceChildren(...(this.tab === 'function' ? [element('h3', null, 'Callers'), this.callers.element, element('h3', null, 'Callees'), this.callees.element]
      : [this.main.element]));
    // A matching stack is in one of the two trees or in both, so the values cannot be added.
    const value = this.word ? Math.max(...icicles.map((i) => i.found())) : 0;
    this.found.textContent = !this.word ? '' : `${this.unit(value)}, ${percentText(share(value, this.all))}`;
    this.describe();
    this.tables.replaceChildren(details('Show as table', this.asTable()));
  }

  describe() {
    const shrunk = sum(this.values[this.shown].filter((v) => v < 0));
    const span = isSelected() ? cutsText(this.sides[this.shown]) : 'the whole run';
    const when = {peak: 'Bytes live when most bytes were live, of the whole run.', end: `Bytes live at the end of ${isSelected() ? span : 'the run'}.`,
      allocated: `Bytes allocated in ${span}.`, allocs: `Allocations in ${span}.`,
      growth: `Bytes live at the end minus those live at the start of ${span}.` +
      (shrunk < 0 ? ` Call sites that shrank, by ${bytesText(-shrunk)}, are left out.` : ''),
      temporary: `Blocks freed ${lifeText(this.sides[0].profile, 0)} after their allocation, of the whole run.`};
    const how = {down: '', up: ' Each function that allocates is at the top, with its callers below.',
      function: ' Callers of callers, and callees of callees, are below.', temporary: ''};
    const sides = this.sides.length < 2 ? '' : ` Orange grew from ${this.sides[0].name} to ${this.sides[1].name}, blue shrank.`;
    this.note.textContent = when[this.key()] + how[this.tab] + sides + (this.all ? '' : ' There are none.');
  }

  asTable() {
    const totals = functionTotals(this.lists, this.fold, this.values);
    const rows = [...totals.values()].filter((t) => t.totals.some((v) => v > 0) && (this.word === '' || this.isMatch(t.frame)));
    if (this.sides.length > 1) {
      return this.changesTable(rows);
    }
    rows.sort((a, b) => b.totals[0] - a.totals[0]);
    if (this.tab === 'temporary') {
      return this.temporariesTable(rows);
    }
    return table('functions', `Functions by what they and their callees account for: ${WEIGHTS[this.weight].text.toLowerCase()}`,
      {function: textColumn('function'), total: 'with callees', self: 'itself', share: 'share', place: textColumn('place')},
      this.first(rows).map((t) => [this.link(t), this.unit(t.totals[0]), this.unit(t.selves[0]), percentText(share(t.totals[0], this.all)),
        element('span.frame', null, placeText(t.frame))]));
  }

  first(rows) {
    return rows.slice(0, FUNCTIONS_IN_TABLE);
  }

  link(t) {
    return element('button.frame.sort', {type: 'button', 'data-function': t.frame.function, onclick: () => this.choose(t.frame.function)}, t.frame.function);
  }

  temporariesTable(rows) {
    const allocs = functionTotals(this.lists, this.fold, [this.sides[0].profile.allocs]);
    const bytes = functionTotals(this.lists, this.fold, [this.sides[0].profile.short_lived_bytes]);
    const of = (all, t) => all.get(t.frame.function).totals[0];
    return table('temporaries', 'Functions by short-lived blocks that they and their callees allocate',
      {function: textColumn('function'), total: 'short-lived blocks', share: 'of its allocations', bytes: 'bytes', place: textColumn('place')},
      this.first(rows).map((t) => [this.link(t), countText(t.totals[0]), percentText(share(t.totals[0], of(allocs, t))), bytesText(of(bytes, t)),
        element('span.frame', null, placeText(t.frame))]));
  }

  changesTable(rows) {
    const change = (t) => t.totals[1] - t.totals[0];
    rows.sort((a, b) => Math.abs(change(b)) - Math.abs(change(a)));
    const columns = {function: textColumn('function'), first: this.sides[0].name, second: this.sides[1].name, change: 'change', place: textColumn('place')};
    return table('changes', `Functions by the change of what they and their callees account for: ${WEIGHTS[this.key()].text.toLowerCase()}`, columns,
      this.first(rows).map((t) => [this.link(t), this.unit(t.totals[0]), this.unit(t.totals[1]), changeText(...t.totals, (v) => this.unit(v)),
        element('span.frame', null, placeText(t.frame))]));
  }
}

// Returns a text such as "+1.5 MiB (+12 %)".
function changeText(before, after, text) {
  const part = before > 0 && after !== before ? ` (${after > before ? '+' : '−'}${percentText(Math.abs(after - before) / before)})` : '';
  return after === before ? 'no change' : `${after > before ? '+' : '−'}${text(Math.abs(after - before))}${part}`;
}

let stacksSections = 0;

function stacksSection(sides, title) {
  return section('icicle', title, new Stacks(sides, ++stacksSections).element);
}
