// Who keeps pages from being given back: what is live in pages that are mostly free.

const MOST_GROUPS = 20; // of threads and of call sites that are shown

function rangeText(from, to, text) {
  // What is as great as that has no limit.
  return !isNumber(to) || to > 2 ** 62 ? `${text(from)} and more` : !from ? `up to ${text(to)}` : from === to ? text(to) : `${text(from)} to ${text(to)}`;
}

// Call sites have names where they are among those that take most, and the workload is the one that was replayed.
function siteName(workload, number) {
  const c = workload && workload.stat.call_sites;
  const site = c && [...c.at_peak, ...c.at_end].find((x) => x.site === number && x.frames.length);
  return !number ? 'call site not known' : site ? shortened(`call site ${number}, ${frameText(ownFrame(site.frames))}`, 100) : `call site ${number}`;
}

const HOLDER_LABELS = {
  by_size: (r) => rangeText(r.size_from, r.size_to, bytesText),
  by_age: (r) => (r.age_to === 1 ? 'up to 1 event old' : `${rangeText(r.age_from, r.age_to, shortText)} events old`),
  by_thread: (r) => (r.thread === null ? 'from before the start' : `thread ${r.thread}`),
  by_site: (r, workload) => siteName(workload, r.site),
};

const HOLDER_VALUES = ['wasted_bytes', 'live_bytes', 'blocks'];

function holderRow(label, first, values) {
  return {label, first, values, texts: [bytesText(values[0]), bytesText(values[1]), countText(values[2])]};
}

// All blocks are in the groups of sizes; of threads and sites there can be more than are shown.
function holderRows(h, workload) {
  const all = HOLDER_VALUES.map((key) => sum((h.by_size || []).map((r) => r[key])));
  return Object.entries(HOLDER_LABELS).flatMap(([by, label]) => {
    const most = by === 'by_thread' || by === 'by_site' ? MOST_GROUPS : Infinity;
    const groups = h[by] || [];
    const shown = most === Infinity ? groups : groups.filter((r) => r.wasted_bytes > 0).slice(0, most);
    const rows = shown.map((r, i) => holderRow(label(r, workload), i === 0, HOLDER_VALUES.map((key) => r[key])));
    const rest = HOLDER_VALUES.map((key, i) => Math.max(all[i] - sum(shown.map((r) => r[key])), 0));
    return groups.length > shown.length ? [...rows, holderRow(by === 'by_site' ? 'other call sites' : 'other threads', false, rest)] : rows;
  });
}

function holderTable(name, moment, h, workload) {
  const text = `At event ${countText(h.event)}, ${bytesText(h.live_bytes)} are live in ${countText(h.pages)} pages. ` +
    `${countText(h.mostly_free_pages)} of these are mostly free: ${bytesText(h.wasted_bytes)} in them cannot be given back, because of what is live there.`;
  return figure(`${name}, ${moment}`, text, !h.wasted_bytes ? null : element('div.holders', null, barTable(`What keeps pages: ${name}, ${moment}`,
    ['free, but kept', 'live bytes', 'blocks'], holderRows(h, workload), true)));
}

function holdersSection(results, names, workloads) {
  const moments = [['at_peak', 'at the peak'], ['at_end', 'at the end']];
  const tables = results.flatMap((item, i) => moments.filter(([key]) => (item.result.holders || {})[key])
    .map(([key, moment]) => holderTable(names[i], moment, item.result.holders[key],
      workloads.find((w) => w.side === item.side && w.stat.events === item.result.events + (item.result.skipped || 0)))));
  return !tables.length ? null : section('holders', 'Who keeps pages from being given back', element('p.note', null,
    'A page can be given back only when nothing in it is live. By size, by age, by thread and, where they were ' +
    'recorded, by call site: all that is live, and its share of what is free in pages of which less than half is live.'), tables);
}
