// Heap usage of the program, and charts over its run.

function binMiddle(ends, i) {
  return (ends[i] + (i ? ends[i - 1] : 0)) / 2;
}

// Returns two points for each bin, its minimum and its maximum. The value that is nearer to the
// previous point comes first.
function extremesOf(ends, low, high) {
  const points = [];
  let last = 0;
  for (let i = 0; i < ends.length; i++) {
    const from = i ? ends[i - 1] : 0;
    const quarter = (ends[i] - from) / 4;
    const rising = Math.abs(low[i] - last) <= Math.abs(high[i] - last);
    points.push([from + quarter, rising ? low[i] : high[i]], [ends[i] - quarter, rising ? high[i] : low[i]]);
    last = rising ? high[i] : low[i];
  }
  return points;
}

function axisOf(s, axis) {
  return axis === 'ns' ? s.timeline.by_time : s.timeline.by_event;
}

function endsOf(s, axis) {
  return axis === 'ns' ? s.timeline.by_time.end_ns : s.timeline.by_event.end_event;
}

function livePoints(s, axis) {
  const t = axisOf(s, axis);
  return t ? extremesOf(endsOf(s, axis), t.min_bytes, t.max_bytes) : [];
}

// Returns the rows of `item.result[key]` that contain numbers and have at least `columns` columns.
function timelineRows(item, key, columns, value) {
  return (item.result[key] || []).filter((r) => Array.isArray(r) && r.length >= columns && isNumber(value(r)));
}

// Returns the samples of a replay, at the event of the recorded program or at the time of that
// event.
function replayPoints(s, item, axis, value, key = 'timeline') {
  const rows = timelineRows(item, key, 4, value);
  if (axis !== 'ns') {
    return rows.map((r) => [r[0], value(r)]);
  }
  if (!s || !s.timeline.by_time) {
    return rows.map((r) => [r[1], value(r)]);
  }
  const {end_event: events, end_ns: ns} = s.timeline.by_time;
  return rows.map((r) => [between(events, ns, r[0]), value(r)]);
}

function recordedPoints(s, axis, column) {
  const samples = s.timeline.rss_ns_min_mean_max_anon || [];
  const place = (ns) => (axis === 'ns' ? ns : between(s.timeline.by_time.end_ns, s.timeline.by_time.end_event, ns));
  return samples.map((sample) => [place(sample[0]), sample[column]]);
}

// Memory of the recorded program. RSS includes code and libraries. If RSS would flatten the other
// lines, it is hidden at first.
function recordedSeries(w, of, axis) {
  const s = w.stat;
  const rss = Math.max(...(s.timeline.rss_ns_min_mean_max_anon || []).map((r) => r[3]), 0);
  return [
    {name: 'anonymous memory' + of, points: recordedPoints(s, axis, 4), dash: [2, 3], colour: 7},
    {name: 'RSS' + of, points: recordedPoints(s, axis, 3), dash: null, colour: 1, hidden: rss > 5 * s.peak.bytes},
  ];
}

// The predicted memory of the whole process with each allocator, and the part of that memory
// outside the heap. The lines are hidden at first if they would flatten the other lines.
function processSeries(workloads, results, names, axis) {
  const known = results.filter((item) => timelineRows(item, 'process_timeline', 4, (r) => r[2]).length);
  const of = (item) => (workloads.find((x) => x.side === item.side) || workloads[0] || {}).stat;
  const hidden = known.some((item) => Math.max(...item.result.process_timeline.map((r) => r[3])) > 5 * item.result.peak_live_bytes);
  return known.flatMap((item) => {
    const i = results.indexOf(item);
    const line = (name, column, dash) => ({name: name + ', ' + names[i], hidden, dash, colour: i,
      points: replayPoints(of(item), item, axis, (r) => r[column], 'process_timeline')});
    return [line('process', 2, [6, 3]), ...(item === known[0] ? [line('outside the heap', 3, [2, 2])] : [])];
  });
}

// The best known placement, as a horizontal line.
function placementSeries(workloads, results, axis) {
  const item = results.find((x) => x.result.placement);
  const w = item && (workloads.find((x) => x.side === item.side) || workloads[0]);
  const points = item ? replayPoints(w && w.stat, item, axis, () => item.result.placement.best_bytes) : [];
  return points.length ? [{name: 'best placement found', points: [points[0], points[points.length - 1]], dash: [1, 2], colour: 6}] : [];
}

// Returns true if the live bytes of a replay differ so much from the recorded live bytes that they
// need a separate line.
function hasOwnLive(item) {
  const live = (item.result.fidelity || {}).live;
  return Boolean(live) && live.max_difference_bytes > 0.02 * item.result.peak_live_bytes;
}

function memorySeries(workloads, results, names, axis) {
  const several = workloads.length > 1;
  const series = workloads.map((w, i) => ({name: several ? `live, ${w.name}` : 'live bytes', points: livePoints(w.stat, axis),
    colour: several ? i : undefined, dash: null, width: 2, fill: !several}));
  results.forEach((item, i) => {
    const w = workloads.find((x) => x.side === item.side) || workloads[0];
    series.push({name: 'RSS, ' + names[i], points: replayPoints(w && w.stat, item, axis, (r) => r[2]), colour: i});
    if (hasOwnLive(item)) {
      series.push({name: 'live, replayed on ' + names[i], points: replayPoints(w && w.stat, item, axis, (r) => r[3]), colour: i,
        dash: [1, 3]});
    }
  });
  series.push(...processSeries(workloads, results, names, axis), ...placementSeries(workloads, results, axis));
  workloads.forEach((w) => {
    series.push(...recordedSeries(w, several ? ', ' + w.name : '', axis));
  });
  return series;
}

function fragmentationSeries(workloads, results, names, axis) {
  return results.map((item, i) => {
    const w = workloads.find((x) => x.side === item.side) || workloads[0];
    const peak = Math.max(...(item.result.timeline || []).map((r) => r[3] || 0), 1);
    // While hardly any bytes are live, the ratio has no meaning.
    const value = (r) => (r[3] >= peak / 100 ? r[2] / r[3] : NaN);
    return {name: names[i], points: replayPoints(w && w.stat, item, axis, value), colour: i};
  });
}

function groupSeries(s, axis) {
  const t = axisOf(s, axis);
  const ends = t ? endsOf(s, axis) : [];
  const all = t ? t.by_size : [];
  const groups = all.filter((g) => g.end_bytes.some((v) => v > 0));
  return groups.map((g, i) => ({name: 'blocks of ' + classText(g.max_bytes, all.indexOf(g) ? all[all.indexOf(g) - 1].max_bytes : 0),
    points: ends.map((x, k) => [x, g.end_bytes[k]]), colour: i, dash: null}));
}

function rateSeries(s, axis) {
  const t = s.timeline.by_time;
  if (!t) {
    return [];
  }
  const place = (i) => (axis === 'ns' ? binMiddle(t.end_ns, i) : binMiddle(t.end_event, i));
  const perSecond = (values) => values.map((v, i) => {
    const ns = t.end_ns[i] - (i ? t.end_ns[i - 1] : 0);
    return [place(i), ns > 0 ? v * 1e9 / ns : 0];
  }).filter((_, i) => axis === 'ns' || t.events[i] > 0);
  return [{name: 'all events', points: perSecond(t.events), colour: 0}, {name: 'allocations', points: perSecond(t.allocs), colour: 1},
    {name: 'frees', points: perSecond(t.frees), colour: 2}];
}

function memoryChart(workloads, results) {
  const names = resultNames(results);
  const recorded = workloads.some((w) => (w.stat.timeline.rss_ns_min_mean_max_anon || []).length);
  return new Lines({title: results.length ? 'RSS of each allocator and live bytes' : recorded ? 'Live and resident bytes' : 'Live bytes', unit: 'bytes', whole: true,
    from: (axis) => memorySeries(workloads, results, names, axis)});
}

function memoryNote(workloads, results) {
  const recorded = workloads.some((w) => (w.stat.timeline.rss_ns_min_mean_max_anon || []).length);
  return 'Live bytes are the requested sizes of all blocks that are allocated and not yet freed. ' + (results.length ? 'RSS above live bytes is headers, rounding, ' +
    'caches and holes; RSS below live bytes means pages that were never written. A sample of a replay is drawn where the recorded program was at the same event. ' +
    (results.some(hasOwnLive) ? 'Threads of a replay interleave differently from the recorded ones: its RSS belongs to its own live bytes, which are drawn beside it. ' :
      'The live bytes of each replay are within 2 % of the recorded peak at every sample, so one line stands for all. ') : '') +
    (results.some((item) => (item.result.process_timeline || []).length) ? 'The memory of the whole process is the RSS of the replay, which is the ' +
      'heap, plus the memory outside the heap: files, stacks and other mappings, as sampled in the recording. ' : '') +
    (results.some((item) => item.result.process_rss_has_recording) ? 'It is too high by the memory of heaptape in the recorded process, whose size is unknown. ' : '') +
    (results.some((item) => item.result.placement) ? 'The best placement found is the lowest memory that a placement of the blocks is known to need without moving ' +
      'them: found by an offline search or by one of the allocators. An optimal placement may need less. ' : '') +
    (recorded ? 'The anonymous memory of the recorded program includes its own mappings, RSS also its code and libraries and the memory of heaptape in it. ' : '') +
    'Lines keep the minimum and maximum of each interval.';
}

function memorySection(workloads, results) {
  const names = resultNames(results);
  const fragmentation = new Lines({title: 'RSS divided by live bytes', unit: 'ratio', zero: false,
    note: '1 means no overhead. Omitted where live bytes are less than 1 % of their peak.',
    from: (axis) => fragmentationSeries(workloads, results, names, axis)});
  const others = workloads.flatMap((w) => {
    const of = workloads.length > 1 ? ': ' + w.name : '';
    return [
      new Lines({title: 'Live bytes by block size' + of, unit: 'bytes', stacked: true, from: (axis) => groupSeries(w.stat, axis)}),
      new Lines({title: 'Heap calls per second' + of, unit: 'rate', from: (axis) => rateSeries(w.stat, axis)}),
    ];
  });
  return section('memory', 'Memory over time', element('p.note', null, memoryNote(workloads, results)), fragmentation.element,
    others.map((c) => c.element));
}

function isTimed(workloads) {
  return workloads.length > 0 && workloads.every((w) => w.stat.timeline.by_time);
}

function axisChoice(workloads) {
  const timed = isTimed(workloads);
  const choice = (axis, text, checked) => element('label', null, element('input', {type: 'radio', name: 'axis', value: axis,
    checked, onchange: () => drawLines(axis)}), text);
  return element('fieldset.axis', null, element('legend', null, 'Charts over'), timed ? choice('ns', 'time', true) : null, choice('events', 'events', !timed),
    element('span.note', null, 'Drag to select a span: figures that depend on time follow.'));
}

function freedBlocks(s) {
  return sum(s.lifetimes.by_events.map((l) => l.count));
}

// Returns the limit of the next smaller class. `classes` omits empty classes, so the limit is
// computed: each class ends at half the limit of the next class.
function classBefore(classes, i) {
  const max = classes[i].max_bytes;
  return max === null ? 8 * 2 ** 30 : max > 8 ? max / 2 : 0;
}

function limits(classes) {
  return classes.map((c, i) => classText(c.max_bytes, classBefore(classes, i)));
}

function sizesFigure(s) {
  const labels = limits(s.sizes);
  return figure('Requested sizes, and blocks live at peak', 'Each column of bars has its own scale.', barTable('sizes', 'Sizes by powers of two',
    {count: 'requests', bytes: 'requested bytes', live_at_peak_bytes: 'live at peak', live_at_end_bytes: 'live at end'}, s.sizes.map((c, i) => ({label: labels[i],
      values: [c.count, c.bytes, c.live_at_peak_bytes, c.live_at_end_bytes],
      texts: [countText(c.count), bytesText(c.bytes), bytesText(c.live_at_peak_bytes), bytesText(c.live_at_end_bytes)]})), true));
}

function pairedSizes(workloads) {
  const maxes = [...new Set(workloads.flatMap((w) => w.stat.sizes.map((c) => c.max_bytes)))].sort((a, b) =>
    (a === null) - (b === null) || a - b);
  const of = (w, max) => w.stat.sizes.find((c) => c.max_bytes === max) || {count: 0};
  const part = (w, max) => share(of(w, max).count, w.stat.requests.sized);
  return figure('Requested sizes: share of requests', null, barTable('sizes-diff', 'Sizes by powers of two',
    Object.fromEntries(workloads.map((w, i) => ['side-' + i, w.name])),
    maxes.map((max) => ({label: max === null ? 'larger' : 'up to ' + bytesText(max), values: workloads.map((w) => part(w, max)),
      texts: workloads.map((w) => percentText(part(w, max)))}))));
}

function lifetimesFigure(s) {
  const all = freedBlocks(s);
  let before = 0;
  const rows = s.lifetimes.by_events.map((l) => {
    before += l.count;
    return {label: l.max_events === null ? 'longer' : l.max_events === 1 ? 'the next event' : shortText(l.max_events) + ' events',
      values: [l.count, l.bytes], texts: [`${countText(l.count)} (${percentText(share(before, all))} cumulative)`, bytesText(l.bytes)]};
  });
  return figure('Block lifetimes in events', 'Freed blocks by the number of events between allocation and free.',
    barTable('lifetimes-events', 'Lifetimes in events', {count: 'blocks', bytes: 'bytes'}, rows, true));
}

function timesFigure(s) {
  const rows = s.lifetimes.by_time.map((l) => ({label: l.max_ns === null ? 'longer' : nsText(l.max_ns), values: [l.count, l.bytes],
    texts: [countText(l.count), bytesText(l.bytes)]}));
  return s.timeline.by_time ? figure('Block lifetimes in time', 'Freed blocks by the time between allocation and free.',
    barTable('lifetimes-time', 'Lifetimes in time', {count: 'blocks', bytes: 'bytes'}, rows, true)) : null;
}

function reallocFigure(s) {
  const r = s.realloc;
  const rows = [['grown in place', r.grown_in_place], ['grown and moved', r.grown_moved], ['shrunk in place', r.shrunk_in_place],
    ['shrunk and moved', r.shrunk_moved]].map(([label, c]) => ({label, values: [c.count, c.bytes],
    texts: [countText(c.count), bytesText(c.bytes)]}));
  if (!rows.some((row) => row.values[0])) {
    return null;
  }
  const factors = r.growth_factors.map((g, i) => ({label: g.max_factor === null
    ? `over ${r.growth_factors[i - 1].max_factor} ×` : `up to ${g.max_factor} ×`, values: [g.count], texts: [countText(g.count)]}));
  return figure('realloc in the recorded run', 'Bytes are the smaller of the old and the new size: what a move copies.',
    barTable('reallocs', 'Reallocs', {count: 'calls', bytes: 'bytes'}, rows, true),
    barTable('growth', 'Growth factors', {count: 'calls'}, factors));
}

// `figures` is the table of figures of stat.
function totalsTable(s, figures) {
  const rows = figures.map((f) => [f, valueAt(s, f.path)]).filter(([, v]) => isNumber(v)).map(([f, v]) => [f.label, TEXT_OF[f.unit](v)]);
  rows.push(['processes', countText(s.processes.length + (s.other_processes || 0))]);
  return table('totals', 'Totals', {figure: textColumn('figure'), value: 'value'}, rows);
}

function callsTable(s) {
  const rows = Object.entries(s.calls).sort((a, b) => b[1].count - a[1].count).map(([name, c]) => [name, countText(c.count),
    percentText(share(c.count, s.events)), countText(c.failed), bytesText(c.bytes), bytesText(c.min_bytes), bytesText(c.mean_bytes),
    bytesText(c.max_bytes)]);
  return table('calls', 'Calls', {call: textColumn('call'), count: 'count', share: 'share', failed: 'failed', bytes: 'bytes', min_bytes: 'min',
    mean_bytes: 'mean', max_bytes: 'max'}, rows);
}

function topTable(s) {
  const {by_count: count, by_bytes: bytes} = s.top_sizes;
  return table('top-sizes', 'Top sizes', {rank: 'rank', size_by_count: 'size by requests', count: 'requests', size_by_bytes: 'size by bytes',
    bytes: 'bytes'}, count.map((c, i) => [i + 1, bytesText(c.size_bytes), countText(c.count), bytesText(bytes[i].size_bytes),
    bytesText(bytes[i].size_bytes * bytes[i].count)]));
}

function roundingTable(s) {
  const rows = [['glibc: multiples of 16 bytes with an 8-byte header', s.size_classes.glibc], ['four size classes per doubling',
    s.size_classes.four_per_doubling]].map(([name, c]) => [name, bytesText(c.internal_fragmentation_bytes), percentText(share(c.internal_fragmentation_bytes, s.requests.bytes))]);
  rows.push(['padding to multiples of the alignment', bytesText(s.alignment.padding_bytes),
    percentText(share(s.alignment.padding_bytes, s.requests.bytes))]);
  return table('rounding', 'Internal fragmentation, over all requests', {classes: textColumn('size classes'), bytes: 'bytes',
    share: 'of requested bytes'}, rows);
}

const MATRIX_THREADS = 24;

function matrixTable(s) {
  const pairs = s.thread_pairs.from_to_count_bytes;
  const all = s.by_thread.filter((t) => t.thread !== null && t.local_frees + t.remote_frees + t.remotely_freed > 0).map((t) => t.thread);
  const threads = all.slice(0, MATRIX_THREADS);
  const counts = new Map(pairs.map(([from, to, count]) => [from + ':' + to, count]));
  s.by_thread.forEach((t) => counts.set(t.thread + ':' + t.thread, t.local_frees));
  const max = Math.max(...counts.values(), 1);
  const cell = (from, to) => {
    const n = counts.get(from + ':' + to) || 0;
    const e = element('span.heat', null, n ? shortText(n) : '·');
    e.style.setProperty('--heat', (n ? 10 + 60 * Math.log1p(n) / Math.log1p(max) : 0) + '%');
    return e;
  };
  return figure('Frees between threads', 'Rows: the thread that allocated the block. Columns: the thread that freed or resized it. Darker cells are more blocks.' +
    (all.length > threads.length ? ` The first ${threads.length} of ${all.length} threads are shown.` : ''),
    table('matrix', 'Blocks from thread to thread', {from: textColumn('allocated by'),
      ...Object.fromEntries(threads.map((t) => ['thread-' + t, threadName(s, t)]))},
    threads.map((from) => [threadName(s, from), ...threads.map((to) => cell(from, to))])));
}

function threadsSection(s) {
  if (s.by_thread.length < 2) {
    return null;
  }
  const rows = s.by_thread.map((t) => [t.thread === null ? 'others' : threadName(s, t.thread), countText(t.events), bytesText(t.allocated_bytes),
    countText(t.local_frees), countText(t.remote_frees), countText(t.remotely_freed), bytesText(t.live_at_end_bytes)]);
  return section('threads', 'Threads', matrixTable(s), table('threads', 'Threads', {thread: textColumn('thread'), events: 'events',
    allocated_bytes: 'allocated', local_frees: 'local frees', remote_frees: 'remote frees', remotely_freed: 'remotely freed',
    live_at_end_bytes: 'live at end'}, rows));
}

function sitesSections(w, several) {
  return [w.profile ? stacksSection([w], 'Flame graph' + (several ? ': ' + w.name : '')) : null, sitesSection(w)];
}

function usageSections(w, figures) {
  const s = w.stat;
  return [
    section('usage', 'Heap usage', details('Totals', totalsTable(s, figures)), callsTable(s), sizesFigure(s), roundingTable(s), details('Top sizes', topTable(s)),
      lifetimesFigure(s), timesFigure(s), reallocFigure(s)),
    threadsSection(s),
  ];
}
