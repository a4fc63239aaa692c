// A tree of call stacks as an icicle. The width of a node is its value.

const LEAST_WIDTH = 0.0015; // share of the visible width; narrower functions are omitted

// Returns a shade from 0 to 4, which is always the same for a function.
function shadeOf(frame) {
  let hash = 0;
  for (const c of frame.function) {
    hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
  }
  return hash % 5;
}

// `owner` has isMatch(frame), classOf(node) and textOf(node), which describe a node of the tree.
class Icicle {
  constructor(owner, label) {
    this.owner = owner;
    this.box = element('div.icicle', {role: 'tree', 'aria-label': `${label}. Arrow keys move, Enter zooms in, Escape zooms out.`,
      onkeydown: (e) => this.key(e)});
    this.detail = element('p.readout', {'aria-live': 'polite'});
  }

  get element() {
    return element('div', null, this.box, this.detail);
  }

  // Shows a tree that is new or has new values.
  show(tree) {
    if (this.tree !== tree) {
      this.tree = tree;
      this.top = this.focus = tree.root;
    }
    this.draw();
  }

  draw() {
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
    const name = n.frame.function;
    const e = element('div.node' + this.owner.classOf(n) + (above ? '.above' : '') + (this.owner.isMatch(n.frame) ? '.match' : ''),
      {role: 'treeitem', tabindex: -1, 'aria-level': n.depth + 1, 'aria-label': `${name}, ${this.owner.textOf(n)}`,
        'aria-expanded': n.children.size ? 'true' : null, onclick: () => this.zoom(n), onmouseenter: () => this.tell(n), onfocus: () => this.tell(n)},
      element('span', {'aria-hidden': 'true'}, width > 0.02 ? name : ''));
    at(e, left);
    e.style.width = `calc(${100 * width}% - 1px)`;
    e.style.top = `${n.depth * 1.375}rem`;
    this.deepest = Math.max(this.deepest, n.depth);
    this.items.push({node: n, element: e});
  }

  tell(n) {
    const place = placeText(n.frame);
    this.detail.textContent = `${n.frame.function}${place ? ` (${place})` : ''}: ${this.owner.textOf(n)}`;
  }

  // Returns the value of the stacks that contain a match.
  found() {
    const total = (n) => (this.owner.isMatch(n.frame) ? n.value : sum([...n.children.values()].map(total)));
    return total(this.tree.root);
  }

  zoom(n) {
    this.top = this.focus = n;
    this.draw();
    this.rove(n, true);
  }

  // Moves the focus. Tab reaches one function; the arrow keys move from that function.
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
}
