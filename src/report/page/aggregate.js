// Files of `heaptape record --aggregate`: live bytes at the end of each period, and the call sites.

function isAggregate(w) {
  return w.stat.kind === 'aggregate';
}

function growthTable(s) {
  const {live_bytes: live, period_ns: period} = s.growth;
  const rows = live.slice(1).map((bytes, i) => [nsText((i + 1) * period), bytesText(bytes),
    (bytes < live[i] ? '−' : '+') + bytesText(Math.abs(bytes - live[i]))]);
  return rows.length ? table('periods', 'Live bytes at the end of each period', {time: 'time', live: 'live', growth: 'growth'}, rows)
    : element('p.note', null, `No period of ${nsText(period)} was over.`);
}

function growingSites(s) {
  const sites = s.call_sites ? s.call_sites.by_growth : [];
  return sites.length ? table('by-growth', 'Call sites that grew steadily', {growth: 'growth', end: 'live at end', allocs: 'allocations', site: textColumn('call site')},
    sites.map((x) => [bytesText(x.steady_growth_bytes), bytesText(x.live_at_end_bytes), countText(x.allocs), siteCell(x)])) : null;
}

function aggregateSections(w, figures) {
  return [section('growth', `Live bytes over time: ${w.name}`, totalsTable(w.stat, figures), growthTable(w.stat), growingSites(w.stat)), sitesSection(w)];
}
