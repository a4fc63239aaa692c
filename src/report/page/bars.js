// Charts that are tables: each row has its bar and its numbers, so that they can be read, printed and copied.

function bar(of, series) {
  const b = element('span.bar');
  b.style.width = Math.max(of > 0 ? 0.5 : 0, 100 * Math.min(of, 1)) + '%';
  b.style.setProperty('--bar', `var(--s${series % 8})`);
  return b;
}

// rows: {label, values: [number], texts: [string], first: true where a new group begins}; a bar for each value, each series to its own scale when `apart`.
function barTable(caption, series, rows, apart) {
  const all = Math.max(...rows.flatMap((r) => r.values), 0);
  const most = series.map((_, i) => (apart ? Math.max(...rows.map((r) => r.values[i]), 0) : all) || 1);
  const head = [element('th', {scope: 'col'}, '')];
  series.forEach((name, i) => {
    head.push(element('th.number', {scope: 'col'}, name), element('th.track', {scope: 'col', 'aria-hidden': 'true'}, ''));
    void i;
  });
  const body = rows.map((r, k) => element('tr' + (r.first && k ? '.first' : ''), null, element('th', {scope: 'row'}, r.label), r.values.map((v, i) => [
    element('td.number', null, r.texts[i]), element('td.track', {'aria-hidden': 'true'}, bar(v / most[i], i))])));
  return element('div.scroll', {tabindex: 0, role: 'region', 'aria-label': caption},
    element('table.bars', null, element('caption', null, caption),
      element('thead', null, element('tr', null, head)), element('tbody', null, body)));
}

function at(e, left, width) {
  e.style.left = 100 * left + '%';
  if (width !== undefined) {
    e.style.width = Math.max(100 * width, 0.3) + '%';
  }
  return e;
}

// rows: {label, series, value, low, high, text}: a bar, and the interval as a line across its end.
function intervalTable(caption, columns, rows) {
  const most = Math.max(...rows.map((r) => Math.max(r.value, r.high || 0)), 0) || 1;
  const body = rows.map((r) => {
    const track = element('td.track', {'aria-hidden': 'true'}, bar(r.value / most, r.series));
    if (isNumber(r.low) && isNumber(r.high)) {
      track.append(at(element('span.whisker'), r.low / most, (r.high - r.low) / most));
    }
    return element('tr', null, element('th', {scope: 'row'}, r.label), track,
      r.texts.map((t) => element('td.number', null, t)));
  });
  const head = element('tr', null, element('th', {scope: 'col'}, columns[0]),
    element('th.track', {scope: 'col', 'aria-hidden': 'true'}, ''),
    columns.slice(1).map((c) => element('th.number', {scope: 'col'}, c)));
  return element('div.scroll', {tabindex: 0, role: 'region', 'aria-label': caption},
    element('table.bars.wide', null, element('caption', null, caption), element('thead', null, head),
      element('tbody', null, body)));
}

// rows: {label, series, marks: [value…], texts}: from the first to the last mark on a scale of powers of ten.
function spreadTable(caption, columns, rows) {
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
    return element('tr' + (r.first ? '.first' : ''), null, element('th', {scope: 'row'}, r.label), track,
      r.texts.map((t) => element('td.number', null, t)));
  });
  const scale = `${nsText(10 ** low)} to ${nsText(10 ** high)}, logarithmic`;
  const head = element('tr', null, element('th', {scope: 'col'}, columns[0]),
    element('th.track', {scope: 'col'}, scale), columns.slice(1).map((c) => element('th.number', {scope: 'col'}, c)));
  return element('div.scroll', {tabindex: 0, role: 'region', 'aria-label': caption},
    element('table.bars.wide', null, element('caption', null, caption), element('thead', null, head),
      element('tbody', null, body)));
}
