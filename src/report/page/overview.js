// The top of a report of one workload: facts, figures, the heap over time, findings, and the
// heaviest call sites.

const TOP_FINDINGS = 3;
const TOP_SITES = 5;

function dateText(ns) {
  return new Date(ns / 1e6).toISOString().replace('T', ' ').slice(0, 19) + ' UTC';
}

function factsOf(w) {
  const s = w.stat;
  const r = s.recorded;
  const p = s.processes.find((x) => x.pid === s.timeline.pid) || s.processes[0] || {};
  const ended = p.signal ? `terminated by signal ${p.signal}` : p.exit_status ? `exit status ${p.exit_status}` : null;
  const library = p.allocator && p.allocator.library ? baseName(p.allocator.library) : null;
  const facts = [
    ['Command', element('code', null, shortened(wordsOf(s).join(' '), 300))],
    ['When', [r && r.realtime_ns ? dateText(r.realtime_ns) : null, s.duration_ns ? `for ${nsText(s.duration_ns)}` : null, ended].filter(Boolean).join(', ')],
    ['Where', r ? [r.host, r.kernel, `${r.cpu}, ${r.cpus} CPUs`].filter(Boolean).join(', ') : null],
    ['Allocator', library],
    ['File', [w.name, s.processes.length > 1 ? `${s.processes.length} processes, this is ${p.pid}` : null].filter(Boolean).join(', ')],
  ];
  return element('dl.facts', null, facts.filter(([, v]) => v && v.length !== 0).map(([name, v]) => element('div', null, element('dt', null, name), element('dd', null, v))));
}

function tile(name, value, note) {
  return element('div.tile', null, element('dt', null, name), element('dd', null, element('b', null, value), note ? element('small', null, note) : null));
}

// All samples of RSS include the memory of heaptape in the process.
function recordingText(s) {
  const own = s.peak.recording_rss_bytes;
  return isNumber(own) ? `${bytesText(own)} of heaptape` : 'heaptape’s own';
}

function tilesOf(s) {
  const rss = Math.max(...(s.timeline.rss_ns_min_mean_max_anon || []).map((r) => r[3]), 0);
  const allocs = sum(s.timeline.by_event.allocs);
  const rate = s.duration_ns ? `${rateText(allocs * 1e9 / s.duration_ns)}` : null;
  return element('dl.tiles', null,
    tile('Peak live', bytesText(s.peak.bytes), isNumber(s.peak.ns) ? `at ${nsText(s.peak.ns)}` : `at event ${shortText(s.peak.event)}`),
    rss ? tile('Peak resident', bytesText(rss), `${ratioText(rss / s.peak.bytes)} live, with ${recordingText(s)}`) : null,
    tile('Live at end', bytesText(s.live_at_end_bytes), `${shortText(s.live_at_end_blocks)} blocks`),
    tile('Allocations', shortText(allocs), rate),
    tile('Allocated', bytesText(s.requested_bytes), null),
    tile('Threads', countText(s.threads), s.remote_frees ? `${shortText(s.remote_frees)} remote frees` : null));
}

// Returns the heaviest call sites at the peak. In a selected span, returns the call sites that grew
// most in the span.
function topSites(w) {
  const box = element('div');
  followSelection(() => {
    const key = isSelected() ? 'growth' : 'peak';
    const values = weigh(w, key);
    const all = sum(values.map((v) => Math.max(v, 0)));
    const [end, growth, allocs] = ['end', 'growth', 'allocs'].map((name) => weigh(w, name));
    const rows = sitesOf(w.profile).filter((s) => s.number !== null && values[s.index] > 0).sort((a, b) => values[b.index] - values[a.index]).slice(0, TOP_SITES);
    const caption = isSelected() ? `Call sites that grew most in ${cutsText(w)}` : 'Call sites with most bytes at the peak';
    box.replaceChildren(table('top-sites', caption, {function: textColumn('function'), place: textColumn('place'), bytes: isSelected() ? 'growth' : 'at peak', share: 'share', end: 'live at end', growth: isSelected() ? 'at peak' : 'growth',
      allocs: 'calls'}, rows.map((site) => {
      const own = ownFrame(site.frames);
      return [element('span.frame', {title: own ? own.function : null}, own ? shortName(own.function, 70) : '(unknown)'), element('span.frame', null, own ? placeText(own) : ''),
        bytesText(values[site.index]), percentText(share(values[site.index], all)), bytesText(end[site.index]),
        isSelected() ? bytesText(w.profile.live_at_peak_bytes[site.index]) : bytesText(growth[site.index]), countText(allocs[site.index])];
    })));
  });
  return box;
}

function findingItem(f) {
  return element(f.act ? 'li.act' : 'li', null, f.advice ? [element('b', null, f.advice), ' '] : null, f.text);
}

function overview(w, found, chart) {
  const first = found.slice(0, TOP_FINDINGS);
  return element('section.overview', {id: 'overview', 'aria-label': 'Overview'}, tilesOf(w.stat), element('div.columns', null,
    element('div', null, chart), element('div', null, element('h2', {id: 'what-to-do'}, 'What to do'),
      first.length ? element('ul.findings', {'aria-labelledby': 'what-to-do'}, first.map(findingItem)) : element('p', null, 'No finding: nothing stands out.'),
      found.length > first.length ? element('p.note', null, element('a', {href: '#findings'}, `All ${found.length} findings`)) : null)),
  w.profile ? topSites(w) : null);
}
