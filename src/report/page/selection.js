// The selected span of the run. Charts set the selection. All parts that depend on time follow the
// selection.

const selection = {axis: 'events', from: null, to: null, followers: [], workloads: []};

function isSelected() {
  return selection.from !== null;
}

// Selects a span. `from` null selects the whole run.
function select(from, to) {
  selection.from = from === null || from === to ? null : Math.min(from, to);
  selection.to = selection.from === null ? null : Math.max(from, to);
  selection.followers.forEach((f) => f());
}

// Calls f now and after each change.
function followSelection(f) {
  selection.followers.push(f);
  f();
}

// Interpolates linearly between points with increasing xs.
function between(xs, ys, x) {
  let i = xs.findIndex((v) => v >= x);
  if (i < 0) {
    return ys[ys.length - 1];
  }
  const from = i ? xs[i - 1] : 0;
  const low = i ? ys[i - 1] : 0;
  return xs[i] === from ? ys[i] : low + (ys[i] - low) * (x - from) / (xs[i] - from);
}

function eventAt(s, x) {
  const t = s.timeline.by_time;
  return selection.axis === 'ns' && t ? between(t.end_ns, t.end_event, x) : x;
}

function axisAt(s, event, axis) {
  const t = s.timeline.by_time;
  return axis === 'ns' && t ? between(t.end_event, t.end_ns, event) : event;
}

// Switches the axis of the charts and converts the selection.
function setAxis(axis) {
  const s = selection.workloads.length ? selection.workloads[0].stat : null;
  const place = (x) => (s && x !== null ? axisAt(s, eventAt(s, x), axis) : null);
  const [from, to] = [place(selection.from), place(selection.to)];
  Object.assign(selection, {axis, from, to});
}

function xText(x) {
  return selection.axis === 'ns' ? nsText(x) : `event ${countText(x)}`;
}

function selectionText() {
  return isSelected() ? `${xText(selection.from)} to ${xText(selection.to)}` : 'the whole run';
}

// Returns `x` as a POINT of `stat --from`.
function pointOf(x) {
  return selection.axis === 'ns' ? `${(x / 1e9).toPrecision(6)}s` : String(Math.round(x));
}

function quoted(word) {
  return /^[\w./:=@%+-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

// Creates the bar that describes the selection. The bar stays visible while a span is selected.
function selectionBar(workloads) {
  const text = element('span');
  const exact = element('code');
  const bar = element('div.selection', {role: 'status', hidden: true}, text, ' ',
    element('button', {type: 'button', onclick: () => select(null)}, 'Show the whole run'), ' ', exact);
  followSelection(() => {
    bar.hidden = !isSelected();
    text.textContent = `Selected: ${selectionText()}.`;
    exact.textContent = isSelected() && workloads.some((w) => w.profile)
      ? `heaptape stat --by site --from ${pointOf(selection.from)} --to ${pointOf(selection.to)} ${quoted(workloads[0].name)}` : '';
  });
  return bar;
}
