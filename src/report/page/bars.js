// Charts as tables: each row has a bar and its numbers, which can be read, printed and copied.

function bar(of, series) {
  const b = element('span.bar');
  b.style.width = Math.max(of > 0 ? 0.5 : 0, 100 * Math.min(of, 1)) + '%';
  b.style.setProperty('--bar', `var(--s${series % 8})`);
  return b;
}

// Head of a row, and the cells next to its bars. columns: {name: title}.
function rowHead(r) {
  return element('th', {scope: 'row', 'data-column': 'label'}, r.label);
}

function textCells(r, columns) {
  return Object.keys(columns).map((column, i) => element('td.number', {'data-column': column}, r.texts[i]));
}

function numberHeads(columns) {
  return Object.values(columns).map((title) => element('th.number', {scope: 'col'}, title));
}

// columns: {name: title}. rows: {label, values: [number], texts: [string], first: true at the start
// of a group}. Each value has a bar; if `apart` is set, each column has its own scale.
function barTable(name, caption, columns, rows, apart) {
  const all = Math.max(...rows.flatMap((r) => r.values), 0);
  const max = Object.keys(columns).map((_, i) => (apart ? Math.max(...rows.map((r) => r.values[i]), 0) : all) || 1);
  const head = [element('th', {scope: 'col'}, ''), numberHeads(columns).map((h) => [h, element('th.track', {scope: 'col', 'aria-hidden': 'true'}, '')])];
  return tableOf(name, '.bars', caption, head, rows.map((r, k) => element('tr' + (r.first && k ? '.first' : ''), null, rowHead(r),
    textCells(r, columns).map((cell, i) => [cell, element('td.track', {'aria-hidden': 'true'}, bar(r.values[i] / max[i], i))]))));
}

function at(e, left, width) {
  e.style.left = 100 * left + '%';
  if (width !== undefined) {
    e.style.width = Math.max(100 * width, 0.3) + '%';
  }
  return e;
}

// first: title of the labels. rows: {label, series, value, low, high, texts}. A line across the end
// of the bar shows the interval.
function intervalTable(name, caption, first, columns, rows) {
  const max = Math.max(...rows.map((r) => Math.max(r.value, r.high || 0)), 0) || 1;
  const body = rows.map((r) => {
    const track = element('td.track', {'aria-hidden': 'true'}, bar(r.value / max, r.series));
    if (isNumber(r.low) && isNumber(r.high)) {
      track.append(at(element('span.whisker'), r.low / max, (r.high - r.low) / max));
    }
    return element('tr', null, rowHead(r), track, textCells(r, columns));
  });
  return tableOf(name, '.bars.wide', caption, [element('th', {scope: 'col'}, first),
    element('th.track', {scope: 'col', 'aria-hidden': 'true'}, ''), numberHeads(columns)], body);
}

// rows: {label, series, marks: [value…], texts}. A bar spans the marks on a logarithmic scale.
function spreadTable(name, caption, first, columns, rows) {
  const values = rows.flatMap((r) => r.marks.filter((v) => v > 0));
  const low = Math.floor(Math.log10(Math.max(Math.min(...values, 10), 1)));
  const high = Math.max(Math.ceil(Math.log10(Math.max(...values, 10))), low + 1);
  const place = (v) => (Math.log10(Math.max(v, 10 ** low)) - low) / (high - low);
  const body = rows.map((r) => {
    const places = r.marks.map(place);
    const track = element('td.track', {'aria-hidden': 'true'});
    const line = at(element('span.spread'), places[0], places[places.length - 1] - places[0]);
    line.style.setProperty('--bar', `var(--s${r.series % 8})`);
    track.append(line);
    places.forEach((p, i) => {
      const mark = at(element('span.mark.mark' + i), p);
      mark.style.setProperty('--bar', `var(--s${r.series % 8})`);
      track.append(mark);
    });
    return element('tr' + (r.first ? '.first' : ''), null, rowHead(r), track, textCells(r, columns));
  });
  const scale = `${nsText(10 ** low)} to ${nsText(10 ** high)}, logarithmic`;
  return tableOf(name, '.bars.wide', caption, [element('th', {scope: 'col'}, first), element('th.track', {scope: 'col'}, scale),
    numberHeads(columns)], body);
}
