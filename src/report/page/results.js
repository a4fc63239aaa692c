// Results of replay and compare.

function allocatorName(item) {
  const a = item.result.allocator || {};
  return [a.name || '?', ...(a.tunables || [])].join(',');
}

// Returns names such as "glibc". If several results have the same name, the file and a number are
// added.
function resultNames(results) {
  const names = results.map(allocatorName);
  return names.map((n, i) => (names.filter((m) => m === n).length > 1 ? `${n} (${results[i].name} ${i + 1})` : n));
}

function ratioCell(r, key) {
  const ci = r[key + '_ci95'];
  if (!isNumber(r[key])) {
    return NONE;
  }
  // As in the tables in text, a difference of less than 1 % does not count.
  if (Array.isArray(ci) && ((ci[0] <= 1 && ci[1] >= 1) || Math.abs(r[key] - 1) < 0.01) && r[key] !== 1) {
    return 'no difference';
  }
  return r[key] === 1 ? '1' : `${r[key].toFixed(2)}` + (Array.isArray(ci) ? ` [${ci[0].toFixed(2)}, ${ci[1].toFixed(2)}]` : '');
}

function valueAt(r, path) {
  return path.split('.').reduce((v, key) => (v ? v[key] : undefined), r);
}

// Returns true if `v` is the best of several values in its column.
function isBest(v, f, results) {
  const values = results.map((item) => valueAt(item.result, f.path)).filter(isNumber);
  return f.better && values.length > 1 && v === (f.better === 'less' ? Math.min : Math.max)(...values);
}

// `figures` is the table of figures of replay. Each figure has a column, and another column for its
// ratio.
function resultTable(results, names, figures) {
  const columns = {allocator: textColumn('allocator')};
  for (const f of figures) {
    columns[f.path] = f.label;
    if (f.ratio) {
      columns[f.ratio] = `${f.label} ratio [95\u00a0%]`;
    }
  }
  columns.runs = 'runs';
  const rows = results.map((item, i) => [names[i], ...figures.flatMap((f) => {
    const v = valueAt(item.result, f.path);
    const text = TEXT_OF[f.unit](v);
    return [isBest(v, f, results) ? element('b', null, text) : text, ...(f.ratio ? [ratioCell(item.result, f.ratio)] : [])];
  }), countText((item.result.runs || []).length)]);
  return table('results', 'Medians over the runs of each allocator; ratios to the first one', columns, rows);
}

// Returns any value as text: "a: 1, b: 2".
function plain(v) {
  if (v === null || typeof v !== 'object') {
    return isNumber(v) ? (Number.isInteger(v) ? countText(v) : v.toPrecision(4)) : String(v);
  }
  return (Array.isArray(v) ? v.map(plain) : Object.entries(v).map(([k, x]) => `${k}: ${plain(x)}`)).join(', ');
}

// A table of figures. Each key ends with the unit of its figure.
function keyed(object) {
  const rows = Object.entries(object).map(([key, v]) => {
    const unit = key.endsWith('_bytes') ? 'bytes' : key.endsWith('_ns') ? 'ns' : null;
    const name = unit ? key.slice(0, key.lastIndexOf('_')) : key;
    return [name.replace(/_/g, ' '), unit && isNumber(v) ? TEXT_OF[unit](v) : plain(v)];
  });
  return rows;
}

// Returns the fidelity as a sentence. Values of an unexpected form are printed unchanged.
function fidelityLine(f) {
  if (typeof f !== 'object') {
    return String(f);
  }
  const parts = [];
  if (f.live && isNumber(f.live.points)) {
    parts.push(f.live.equal_points === f.live.points ? `live bytes equal the recorded ones at all ${f.live.points} samples`
      : `live bytes equal the recorded ones at ${f.live.equal_points} of ${f.live.points} samples, max difference ${bytesText(f.live.max_difference_bytes)}`);
  }
  if (f.rss) {
    parts.push(`${f.rss.far_off ? '! ' : ''}private memory ${bytesText(f.rss.replayed_peak_bytes)} at the peak against ${bytesText(f.rss.recorded_peak_bytes)} recorded, ` +
      `mean error ${percentText(f.rss.mean_error)}` +
      (f.rss.recorded_mappings_bytes ? `; up to ${bytesText(f.rss.recorded_mappings_bytes)} of the program’s own mappings are subtracted` : ''));
  } else if (f.rss_missing_reason) {
    parts.push(`memory cannot be judged, because ${f.rss_missing_reason}`);
  }
  if (f.overlap) {
    parts.push(`threads overlap for ${percentText(f.overlap.replayed_event_share)} of the calls, recorded ` +
      percentText(f.overlap.recorded_event_share));
  }
  return parts.length ? parts.join('; ') + '.' : plain(f);
}

function fidelity(results, names) {
  const known = results.map((item, i) => [names[i], item.result.fidelity]).filter((p) => p[1]);
  if (!known.length) {
    return null;
  }
  return element('div.fidelity', null, element('h3', null, 'Fidelity of the replay'), element('ul', null, known.map(([name, f]) =>
    element('li', null, element('b', null, name), ': ', fidelityLine(f)))), element('p.note', null, 'Recorded memory is the ' +
    'program’s private memory minus what it had at the start and, with record --maps, minus its own mappings. docs/reference/figures.md explains the limits.'));
}

// The runs to which the figures belong. A workload with threads is replayed in two ways.
const HOW_REPLAYED = {
  coupled: 'Memory is that of runs whose threads stay as close to each other as recorded',
  real: 'Memory and time are those of threads that run as fast as their dependencies allow',
  one: 'All calls were made by one thread',
};

function howReplayed(results, names) {
  const texts = results.map((item) => {
    const r = item.result;
    const pace = isNumber(r.speed) ? `; the pace was ${r.speed === 1 ? 'the recorded one' : r.speed + ' × the recorded one'}` :
      r.memory_threads === 'coupled' ? ', times and latencies are those of runs at full speed' : '';
    return HOW_REPLAYED[r.memory_threads] && (r.threads > 1 || r.memory_threads === 'one') ? HOW_REPLAYED[r.memory_threads] + pace + '.' : null;
  });
  const same = texts.every((t) => t === texts[0]);
  return texts.map((t, i) => (t && (i === 0 || !same) ? element('p.note.how', null, same ? null : names[i] + ': ', t) : null));
}

function provenance(results, names) {
  const rows = results.map((item, i) => {
    const a = item.result.allocator || {};
    return [names[i], a.library || NONE, a.version || NONE, a.build_id || NONE, plain(item.workload || NONE), item.name];
  });
  const machines = [...new Set(results.map((r) => JSON.stringify(r.machine || null)))].map((m) => JSON.parse(m)).filter(Boolean);
  return details('Provenance of these figures', table('libraries', 'Libraries', {allocator: textColumn('allocator'),
    library: textColumn('library'), version: textColumn('version'), build_id: textColumn('build id'), workload: textColumn('workload'),
    file: textColumn('file')}, rows), machines.map((m) => table('machine', 'Machine', {key: textColumn(''), value: textColumn('')}, keyed(m))));
}

function extremes(r, key) {
  const values = (r.runs || []).map((run) => run[key]).filter(isNumber);
  return values.length ? [Math.min(...values), Math.max(...values)] : [NaN, NaN];
}

function wallTimes(results, names) {
  const rows = results.map((item, i) => {
    const [low, high] = extremes(item.result, 'wall_ns');
    return {label: names[i], series: i, value: item.result.wall_ns, low, high,
      texts: [nsText(item.result.wall_ns), `${nsText(low)} to ${nsText(high)}`, ratioCell(item.result, 'wall_ratio')]};
  });
  return figure('Wall time of the same calls with each allocator', 'Bars are medians of the runs; the line across the end of a bar reaches ' +
    'from the fastest run to the slowest. A ratio is a difference only if its 95 % interval excludes 1.',
  intervalTable('wall-time', 'Wall time', 'allocator', {median: 'median', range: 'all runs', ratio: 'ratio [95\u00a0%]'}, rows));
}

// A quantile of 1/1000 requires 1,000 calls.
const LEAST_CALLS = 1000;

function callRows(results, names) {
  const all = [...new Set(results.flatMap((item) => Object.keys(item.result.calls || {})))];
  const kinds = all.filter((kind) => results.some((item) => ((item.result.calls || {})[kind] || {}).count >= LEAST_CALLS));
  return kinds.flatMap((kind) => {
    const rows = results.map((item, i) => ({item, i, call: (item.result.calls || {})[kind]})).filter((r) => r.call && isNumber(r.call.p50_ns));
    return rows.map(({i, call}, k) => ({label: `${kind}, ${names[i]}`, series: i, first: k === 0,
      marks: [call.p50_ns, call.p99_ns, call.p999_ns], texts: [...[call.mean_ns, call.p50_ns, call.p99_ns, call.p999_ns, call.max_ns].map(nsText),
        isNumber(call.outliers) ? countText(call.outliers) : NONE]}));
  });
}

function tails(results, names) {
  const rows = callRows(results, names);
  return !rows.length ? null : figure('Latency of single calls', 'From one run with timed calls for each ' +
    'allocator, minus the replay overhead. Means leave out outliers: calls of over 10 µs and ten times the p99. Marks: p50, p99 and p99.9; kinds with fewer than 1,000 calls are omitted. Below about 10 ns ' +
    'the resolution of the clock dominates.',
  spreadTable('latency', 'Latency', 'call', {mean: 'mean', p50: 'p50', p99: 'p99', p999: 'p99.9', max: 'max', outliers: 'outliers'}, rows));
}

function sizesRows(results, names) {
  return results.flatMap((item, i) => (item.result.calls_by_size || []).map((c) => [names[i],
    c.max_bytes === null ? 'more' : bytesText(c.max_bytes), countText(c.count), nsText(c.mean_ns), nsText(c.p50_ns), nsText(c.p99_ns),
    nsText(c.p999_ns)]));
}

function bySize(results, names) {
  const rows = sizesRows(results, names);
  return !rows.length ? null : details('Latency by requested size', table('latency-by-size', 'Latency by requested size',
    {allocator: textColumn('allocator'), max_bytes: 'up to', count: 'calls', mean: 'mean', p50: 'p50', p99: 'p99', p999: 'p99.9'}, rows));
}

function resultSections(results, workloads, figures) {
  if (!results.length) {
    return [];
  }
  const names = resultNames(results);
  return [
    section('results', 'Allocators compared', resultTable(results, names, figures), howReplayed(results, names), fidelity(results, names), wallTimes(results, names),
      tails(results, names), bySize(results, names), provenance(results, names)),
    fragmentationSection(results, names, workloads),
  ];
}
