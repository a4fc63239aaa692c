// Fragmentation: the live blocks that pin sparse pages.

const MOST_GROUPS = 20; // limit for threads and for call sites

function rangeText(from, to, text) {
  // A limit above 2^62 means that there is no limit.
  return !isNumber(to) || to > 2 ** 62 ? `${text(from)} and more` : !from ? `up to ${text(to)}` : from === to ? text(to) : `${text(from)} to ${text(to)}`;
}

// Returns the number of a call site and, if the site is one of the heaviest call sites of the
// replayed workload, its function. A workload from a JSON file has no profile.
function siteName(workload, number) {
  const c = workload && workload.stat.call_sites;
  const site = workload && workload.profile ? sitesOf(workload.profile).find((x) => x.number === number && x.frames.length)
    : c && [...c.at_peak, ...c.at_end].find((x) => x.site === number && x.frames.length);
  return !number ? 'unknown call site' : site ? `call site ${number}, ${frameText(ownFrame(site.frames), 70)}` : `call site ${number}`;
}

const FRAGMENTATION_LABELS = {
  by_size: (r) => rangeText(r.size_from, r.size_to, bytesText),
  by_age: (r) => (r.age_to === 1 ? 'up to 1 event old' : `${rangeText(r.age_from, r.age_to, shortText)} events old`),
  by_thread: (r) => (r.thread === null ? 'preexisting blocks' : `thread ${r.thread}`),
  by_site: (r, workload) => siteName(workload, r.site),
};

const FRAGMENTATION_VALUES = ['stranded_bytes', 'live_bytes', 'blocks'];

function fragmentationRow(label, first, values) {
  return {label, first, values, texts: [bytesText(values[0]), bytesText(values[1]), countText(values[2])]};
}

// The size groups include all blocks. The lists of threads and call sites may be cut off.
function fragmentationRows(h, workload) {
  const all = FRAGMENTATION_VALUES.map((key) => sum((h.by_size || []).map((r) => r[key])));
  return Object.entries(FRAGMENTATION_LABELS).flatMap(([by, label]) => {
    const most = by === 'by_thread' || by === 'by_site' ? MOST_GROUPS : Infinity;
    const groups = h[by] || [];
    const shown = most === Infinity ? groups : groups.filter((r) => r.stranded_bytes > 0).slice(0, most);
    const rows = shown.map((r, i) => fragmentationRow(label(r, workload), i === 0, FRAGMENTATION_VALUES.map((key) => r[key])));
    const rest = FRAGMENTATION_VALUES.map((key, i) => Math.max(all[i] - sum(shown.map((r) => r[key])), 0));
    return groups.length > shown.length ? [...rows, fragmentationRow(by === 'by_site' ? 'other call sites' : 'other threads', false, rest)] : rows;
  });
}

function fragmentationTable(name, moment, h, workload) {
  const text = `At event ${countText(h.event)}, ${bytesText(h.live_bytes)} are live in ${countText(h.pages)} pages. ` +
    `${countText(h.sparse_pages)} of these pages are sparse: their live blocks pin ${bytesText(h.stranded_bytes)} of free memory.`;
  return figure(`${name}, ${moment}`, text, !h.stranded_bytes ? null : element('div.fragmentation', null, barTable('pinning', `Pinning blocks: ${name}, ${moment}`,
    {stranded_bytes: 'stranded', live_bytes: 'live bytes', blocks: 'blocks'}, fragmentationRows(h, workload), true)));
}

function fragmentationSection(results, names, workloads) {
  const moments = [['at_peak', 'at the peak'], ['at_end', 'at the end']];
  const tables = results.flatMap((item, i) => moments.filter(([key]) => (item.result.fragmentation || {})[key])
    .map(([key, moment]) => fragmentationTable(names[i], moment, item.result.fragmentation[key],
      workloads.find((w) => w.side === item.side && w.stat.events === item.result.events + (item.result.skipped || 0)))));
  return !tables.length ? null : section('fragmentation', 'Fragmentation', element('p.note', null,
    'An allocator can return a page to the kernel only when no block in it is live. A page is sparse if less than half of it is live; ' +
    'the free bytes of sparse pages are stranded. They are attributed to the live blocks by size, age, thread and, if recorded, call site.'), tables);
}
