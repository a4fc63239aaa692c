// The table of call sites of the selected span: sorted by a column, filtered by thread, size,
// lifetime and name.

const SITES_AT_FIRST = 25;
// Indices in a row of profile.parts. The blocks of `peak` and `end` precede their bytes by one
// index.
const CELL = {site: 0, thread: 1, size: 2, allocs: 3, allocated: 4, peak: 6, end: 8, lives: 9};

function lifeText(p, life) {
  const text = p.lifetime_unit === 'ns' ? nsText : (v) => `${shortText(v)} events`;
  const limits = p.lifetime_limits;
  return life === limits.length + 1 ? 'live at the end' : life === limits.length ? `over ${text(limits[life - 1])}` : `up to ${text(limits[life])}`;
}

function sizeText(size) {
  return size === 31 ? 'over 8 GiB' : classText(8 * 2 ** size, size ? 4 * 2 ** size : 0);
}

class SiteTable {
  constructor(w) {
    this.w = w;
    this.p = w.profile;
    this.sort = {key: 'peak', down: true};
    this.filter = {thread: '', size: '', life: '', word: ''};
    this.max = SITES_AT_FIRST;
    this.body = element('tbody');
    this.status = element('p.note', {role: 'status'});
    this.more = element('button', {type: 'button', onclick: () => {
      this.max *= 4;
      this.draw();
    }});
    this.heads = new Map();
    this.partsOf = this.p.stacks.map(() => []);
    this.p.parts.forEach((part) => this.partsOf[part[CELL.site]].push(part));
    this.columns = [
      {key: 'peak', title: 'live at peak', text: bytesText},
      {key: 'end', title: 'live at end', text: bytesText},
      {key: 'growth', title: 'growth', text: (v) => (v > 0 ? '+' : '') + bytesText(v)},
      {key: 'allocated', title: 'allocated', text: bytesText},
      {key: 'allocs', title: 'calls', text: countText},
      {key: 'size', title: 'mean size', text: bytesText},
      {key: 'life', title: 'lifetime', text: (v) => (v === null ? NONE : lifeText(this.p, v))},
      {key: 'threads', title: 'threads', text: countText},
    ];
    followSelection(() => this.draw());
  }

  get element() {
    const head = element('tr', null, this.columns.map((c) => {
      const th = element('th.number', {scope: 'col'}, element('button.sort', {type: 'button', 'data-sort': c.key, onclick: () => this.sortBy(c.key)}, c.title));
      this.heads.set(c.key, th);
      return th;
    }), element('th', {scope: 'col'}, 'call site'));
    this.draw();
    return element('div', null, this.tools(), this.status, element('div.scroll', {tabindex: 0, role: 'region', 'aria-label': 'Call sites'},
      element('table.sites', {'data-table': 'sites'}, element('caption', null, 'Call sites'), element('thead', null, head), this.body)), this.more);
  }

  tools() {
    const parts = this.p.parts;
    const known = (cell) => [...new Set(parts.map((part) => part[cell]))].sort((a, b) => a - b);
    const lives = Array.from({length: this.p.lifetime_limits.length + 2}, (_, i) => i);
    const choice = (key, title, values, text) => element('label', null, title + ' ', element('select', {'data-filter': key,
      onchange: (e) => this.set(key, e.target.value)}, element('option', {value: ''}, 'all'), values.map((v) => element('option', {value: v}, text(v)))));
    return element('div.tools', null, !parts.length ? null : [choice('thread', 'Thread', known(CELL.thread), (t) => threadName(this.w.stat, t)),
      choice('size', 'Size', known(CELL.size), sizeText), choice('life', 'Lifetime', lives, (life) => lifeText(this.p, life))],
    element('label', null, 'Search ', element('input', {type: 'search', 'data-filter': 'word', placeholder: 'function or file', oninput: (e) => this.set('word', e.target.value)})));
  }

  set(key, value) {
    this.filter[key] = value;
    this.draw();
  }

  sortBy(key) {
    this.sort = {key, down: this.sort.key === key ? !this.sort.down : true};
    this.draw();
  }

  // Returns the figures of a site in the selected span.
  whole(site) {
    const of = (weight) => WEIGHTS[weight].of(this.p, this.cuts)(site.index);
    return {peak: of('peak'), end: of('end'), growth: of('growth'), allocated: of('allocated'), allocs: of('allocs')};
  }

  // Returns the figures of the blocks that pass the filters, over the whole run. With a filter by
  // lifetime, it is unknown when these blocks were live.
  filtered(parts) {
    const life = this.filter.life;
    const of = (cell) => sum(parts.map((part) => part[cell]));
    const all = {peak: of(CELL.peak), end: of(CELL.end), growth: of(CELL.end), allocated: of(CELL.allocated), allocs: of(CELL.allocs)};
    if (life === '') {
      return all;
    }
    if (Number(life) === this.p.lifetime_limits.length + 1) {
      return {peak: null, end: all.end, growth: all.end, allocated: all.end, allocs: of(CELL.end - 1)};
    }
    const cell = CELL.lives + 2 * Number(life);
    return {peak: null, end: 0, growth: 0, allocated: of(cell + 1), allocs: of(cell)};
  }

  row(site) {
    const {thread, size, life, word} = this.filter;
    const all = this.partsOf[site.index] || [];
    const parts = all.filter((part) => (thread === '' || part[CELL.thread] === Number(thread)) && (size === '' || part[CELL.size] === Number(size)));
    const chosen = thread !== '' || size !== '' || life !== '';
    const values = chosen ? this.filtered(parts) : this.whole(site);
    if (chosen && !values.allocs && !values.end) {
      return null;
    }
    if (word && !site.frames.some((f) => `${f.function} ${f.file}`.toLowerCase().includes(word.toLowerCase()))) {
      return null;
    }
    const lives = [...Array.from({length: this.p.lifetime_limits.length + 1}, (_, i) => sum(parts.map((part) => part[CELL.lives + 2 * i]))),
      sum(parts.map((part) => part[CELL.end - 1]))];
    const most = Math.max(...lives);
    return {site, values: {...values, size: values.allocs ? values.allocated / values.allocs : null, life: most ? lives.indexOf(most) : null,
      threads: parts.length ? new Set(parts.map((part) => part[CELL.thread])).size : null}};
  }

  draw() {
    this.cuts = selectedCuts(this.w);
    const {key, down} = this.sort;
    const rows = sitesOf(this.p).map((s) => this.row(s)).filter((r) => r && (r.site.number !== null || r.values.allocs > 0));
    const order = (r) => (isNumber(r.values[key]) ? r.values[key] : -Infinity);
    rows.sort((a, b) => (down ? order(b) - order(a) : order(a) - order(b)) || a.site.index - b.site.index);
    this.body.replaceChildren(...rows.slice(0, this.max).map((r) => element('tr', null, this.columns.map((c) => element('td.number', {'data-column': c.key},
      r.values[c.key] === null ? NONE : c.text(r.values[c.key]))), element('td', {'data-column': 'site'}, siteCell(r.site)))));
    this.heads.forEach((th, k) => th.setAttribute('aria-sort', k !== key ? 'none' : down ? 'descending' : 'ascending'));
    const {thread, size, life} = this.filter;
    this.status.textContent = `${countText(rows.length)} of ${countText(sitesOf(this.p).length - 1)} call sites. ` +
      (thread !== '' || size !== '' || life !== '' ? 'Figures of the blocks that the filters let through, of the whole run.'
        : isSelected() ? `Live at end, growth, allocated and calls are those of ${cutsText(this.w)}.` : 'Figures of the whole run; growth is live bytes at its end minus those at its start.') +
      (this.p.parts_left_out ? ' Filters leave out the lightest call sites.' : '');
    this.more.hidden = rows.length <= this.max;
    this.more.textContent = `Show more (${countText(rows.length - this.max)})`;
  }
}
