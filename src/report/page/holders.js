// Who keeps pages from being given back: what is live in pages that are mostly free.

function rangeText(from, to, text) {
  return !isNumber(to) ? `over ${text(from)}` : !from ? `up to ${text(to)}` : from === to ? text(to) : `${text(from)} to ${text(to)}`;
}

const HOLDER_LABELS = {
  by_size: (r) => rangeText(r.size_from, r.size_to, bytesText),
  by_age: (r) => (r.age_to === 1 ? '1 event old' : `${rangeText(r.age_from, r.age_to, shortText)} events old`),
  by_thread: (r) => (r.thread === null ? 'other threads' : `thread ${r.thread}`),
  by_site: (r) => (typeof r.site === 'string' ? r.site : r.site ? `call site ${r.site}` : 'call site not known'),
};

function holderRows(h) {
  return Object.entries(HOLDER_LABELS).flatMap(([key, label]) => (h[key] || []).map((r, i) => ({label: label(r), first: i === 0,
    values: [r.wasted_bytes, r.live_bytes, r.blocks], texts: [bytesText(r.wasted_bytes), bytesText(r.live_bytes), countText(r.blocks)]})));
}

function holderTable(name, moment, h) {
  const text = `At event ${countText(h.event)}, ${bytesText(h.live_bytes)} are live in ${countText(h.pages)} pages. ` +
    `${countText(h.mostly_free_pages)} of these are mostly free: ${bytesText(h.wasted_bytes)} in them cannot be given back because of the blocks below.`;
  return figure(`${name}, ${moment}`, text, barTable(`In mostly free pages: ${name}, ${moment}`,
    ['free, but kept', 'live bytes', 'blocks'], holderRows(h), true));
}

function holdersSection(results, names) {
  const moments = [['at_peak', 'at the peak'], ['at_end', 'at the end']];
  const tables = results.flatMap((item, i) => moments.filter(([key]) => (item.result.holders || {})[key])
    .map(([key, moment]) => holderTable(names[i], moment, item.result.holders[key])));
  return !tables.length ? null : section('holders', 'Who keeps pages from being given back', element('p.note', null,
    'A page can be given back only when nothing in it is live. By size, by age, by thread and, where they were recorded, by call site.'), tables);
}
