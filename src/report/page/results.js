// What the replays measured.

// "glibc", or with the file it came from when there are several of that name.
function resultNames(results) {
  const names = results.map(allocatorName);
  return names.map((n, i) => (names.filter((m) => m === n).length > 1 ? `${n} (${results[i].name} ${i + 1})` : n));
}

function ratioCell(r, key) {
  const ci = r[key + '_ci95'];
  if (!isNumber(r[key])) {
    return NONE;
  }
  if (Array.isArray(ci) && ci[0] <= 1 && ci[1] >= 1 && r[key] !== 1) {
    return 'no difference';
  }
  return r[key] === 1 ? '1' : `${r[key].toFixed(2)}` + (Array.isArray(ci) ? ` [${ci[0].toFixed(2)}, ${ci[1].toFixed(2)}]` : '');
}

function resultTable(results, names) {
  const columns = ['allocator', 'wall time', 'an event', 'of it the player', 'time ratio [95\u00a0%]', 'peak RSS', 'memory ratio [95\u00a0%]',
    'peak RSS : live', 'mean RSS', 'when all is freed', 'runs'];
  const rows = results.map((item, i) => {
    const r = item.result;
    return [names[i], nsText(r.wall_ns), nsText(r.ns_per_event), nsText(r.harness_ns_per_event), ratioCell(r, 'wall_ratio'),
      bytesText(r.peak_rss_bytes), ratioCell(r, 'rss_ratio'), ratioText(r.peak_fragmentation), bytesText(r.mean_rss_bytes),
      bytesText(r.freed_rss_bytes), countText((r.runs || []).length)];
  });
  return table('Medians over the runs of each allocator; ratios to the first one', columns.map((name, i) =>
    ({name, number: i > 0})), rows, 'results');
}

// Any object as text: "a: 1, b: 2".
function plain(v) {
  if (v === null || typeof v !== 'object') {
    return isNumber(v) ? (Number.isInteger(v) ? countText(v) : v.toPrecision(4)) : String(v);
  }
  return (Array.isArray(v) ? v.map(plain) : Object.entries(v).map(([k, x]) => `${k}: ${plain(x)}`)).join(', ');
}

// Figures whose keys end in their unit.
function keyed(object) {
  const rows = Object.entries(object).map(([key, v]) => {
    const unit = key.endsWith('_bytes') ? 'bytes' : key.endsWith('_ns') ? 'ns' : null;
    const name = unit ? key.slice(0, key.lastIndexOf('_')) : key;
    return [name.replace(/_/g, ' '), unit && isNumber(v) ? TEXT_OF[unit](v) : plain(v)];
  });
  return rows;
}

// What `replay` found out about itself, in words; other shapes of it as they are.
function faithfulLine(f) {
  if (typeof f !== 'object') {
    return String(f);
  }
  const parts = [];
  if (f.live && isNumber(f.live.points)) {
    parts.push(f.live.equal_points === f.live.points ? `live bytes as recorded at all ${f.live.points} looks`
      : `live bytes as recorded at ${f.live.equal_points} of ${f.live.points} looks, at most ${bytesText(f.live.max_difference_bytes)} off`);
  }
  if (f.rss) {
    parts.push(`private memory ${bytesText(f.rss.replayed_peak_bytes)} at the peak against ${bytesText(f.rss.recorded_peak_bytes)} recorded, ` +
      `mean error ${percentText(f.rss.mean_error)}` +
      (f.rss.recorded_mappings_bytes ? `; up to ${bytesText(f.rss.recorded_mappings_bytes)} of its own mappings are taken off` : ''));
  } else if (f.rss_missing_because) {
    parts.push(`recorded memory is not compared: ${f.rss_missing_because}`);
  }
  if (f.overlap) {
    parts.push(`threads overlap for ${percentText(f.overlap.replayed_event_share)} of the calls, recorded ` +
      percentText(f.overlap.recorded_event_share));
  }
  return parts.length ? parts.join('; ') + '.' : plain(f);
}

function faithfulness(results, names) {
  const known = results.map((item, i) => [names[i], item.result.faithfulness]).filter((p) => p[1]);
  if (!known.length) {
    return null;
  }
  return element('div.faithfulness', null, element('h3', null, 'How faithful the replay is'), element('ul', null, known.map(([name, f]) =>
    element('li', null, element('b', null, name), ': ', faithfulLine(f)))), element('p.note', null, 'Recorded memory is all that is private to ' +
    'the program, less what it had at the start and, where record --maps noted them, its own mappings. docs/reference/figures.md says what limits this.'));
}

function provenance(results, names) {
  const rows = results.map((item, i) => {
    const a = item.result.allocator || {};
    return [names[i], a.library || NONE, a.version || NONE, a.build_id || NONE, plain(item.workload || NONE), item.name];
  });
  const machines = [...new Set(results.map((r) => JSON.stringify(r.machine || null)))].map((m) => JSON.parse(m)).filter(Boolean);
  return details('Where these figures come from', table('Libraries', ['allocator', 'library', 'version', 'build id', 'workload',
    'file'].map((name) => ({name})), rows), machines.map((m) => table('Machine', [{name: ''}, {name: ''}], keyed(m))));
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
  return figure('How long the same calls take with each allocator', 'The bar is the median of the runs, the line across its end reaches ' +
    'from the fastest run to the slowest. A ratio counts as a difference only when its 95 % interval is clear of 1.',
  intervalTable('Wall time', ['allocator', 'median', 'all runs', 'ratio [95\u00a0%]'], rows));
}

// One in a thousand needs a thousand.
const LEAST_CALLS = 1000;

function callRows(results, names) {
  const all = [...new Set(results.flatMap((item) => Object.keys(item.result.calls || {})))];
  const kinds = all.filter((kind) => results.some((item) => ((item.result.calls || {})[kind] || {}).count >= LEAST_CALLS));
  return kinds.flatMap((kind) => {
    const rows = results.map((item, i) => ({item, i, call: (item.result.calls || {})[kind]})).filter((r) => r.call && isNumber(r.call.p50_ns));
    return rows.map(({i, call}, k) => ({label: `${kind}, ${names[i]}`, series: i, first: k === 0,
      marks: [call.p50_ns, call.p99_ns, call.p999_ns], texts: [call.mean_ns, call.p50_ns, call.p99_ns, call.p999_ns, call.max_ns].map(nsText)}));
  });
}

function tails(results, names) {
  const rows = callRows(results, names);
  return !rows.length ? null : figure('How long single calls take: from the median to one in a thousand', 'Of one run with timed calls for each ' +
    'allocator; what the player adds is taken off. Marks: median, 99 % and 99.9 % of the calls are at most so long; calls made less than a thousand times are left out. Below some 10 ns it is the ' +
    'clock’s own step that shows.',
  spreadTable('Time of a call', ['call', 'mean', 'p50', 'p99', 'p99.9', 'longest'], rows));
}

function sizesRows(results, names) {
  return results.flatMap((item, i) => (item.result.calls_by_size || []).map((c) => [names[i],
    c.max_bytes === null ? 'more' : bytesText(c.max_bytes), countText(c.count), nsText(c.mean_ns), nsText(c.p50_ns), nsText(c.p99_ns),
    nsText(c.p999_ns)]));
}

function bySize(results, names) {
  const rows = sizesRows(results, names);
  return !rows.length ? null : details('Time of calls by the size asked for', table('Time of calls by size', ['allocator', 'up to', 'calls',
    'mean', 'p50', 'p99', 'p99.9'].map((name, i) => ({name, number: i > 0})), rows));
}

function resultSections(results, workloads) {
  if (!results.length) {
    return [];
  }
  const names = resultNames(results);
  return [
    section('results', 'Which allocator suits it', resultTable(results, names), faithfulness(results, names), wallTimes(results, names),
      tails(results, names), bySize(results, names), provenance(results, names)),
    holdersSection(results, names, workloads),
  ];
}
