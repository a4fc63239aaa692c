// Call sites.

function baseName(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}

// "grow (tree.c:12)", "grow (libfoo.so)", "libfoo.so+0x12".
function frameText(f) {
  const object = baseName(f.module || '');
  const place = f.file ? `${baseName(f.file)}:${f.line}` : f.function.startsWith(`${object}+0x`) ? '' : object;
  return f.function + (place ? ` (${place})` : '');
}

// The innermost frame outside of libraries, or the innermost one if all frames are in libraries.
function ownFrame(frames) {
  return frames.find((f) => f.function && !f.library) || frames[0];
}

function siteCell(site) {
  if (!site.frames.length) {
    return '(unknown)';
  }
  const own = ownFrame(site.frames);
  const at = site.frames.indexOf(own);
  const via = at ? ` via ${shortened(site.frames[at - 1].function, 60)}` : '';
  return [element('span.frame', null, frameText(own) + via), site.frames.length > 1 ? details('stack',
    element('ol.frames', null, site.frames.map((f) => element('li.frame', null, frameText(f))))) : null];
}

// which: 'live_at_peak' or 'live_at_end'.
function sitesTable(name, caption, sites, which, all) {
  const columns = {bytes: 'bytes', share: 'share', blocks: 'blocks', allocs: 'allocations', site: textColumn('call site')};
  return table(name, caption, columns, sites.map((site) => [bytesText(site[which + '_bytes']), percentText(share(site[which + '_bytes'], all)),
    countText(site[which + '_blocks']), countText(site.allocs), siteCell(site)]));
}

// Shares of bytes whose stacks reach the program; empty if unknown.
function coverageText(c) {
  const part = (of, key) => Math.floor(1000 * share(of[key], c.all[key])) / 10;
  const parts = (of) => [['allocated_bytes', 'allocated bytes'], ['live_at_peak_bytes', 'bytes live at the peak'], ['live_at_end_bytes', 'bytes live at the end']]
    .filter(([key]) => c.all[key]).map(([key, what]) => `${part(of, key).toFixed(1)} % of ${what}`).join(', ');
  const sampled = c.stack_sample_bytes ? ' (estimated from sampled stacks)' : '';
  const loading = c.loading.allocated_bytes ? ` Constructors of libraries allocated ${parts(c.loading)}, before the program's first allocation.` : '';
  return parts(c.all) ? `Stacks reach the program's own code for ${parts(c.reached)}${sampled}.${loading}` : '';
}

function coverageTable(c) {
  const columns = {object: textColumn('object'), allocated: 'allocated', peak: 'live at peak', end: 'live at end', stacks: 'stacks'};
  return c.ends.length ? details('where the other stacks end', table('stack-ends', 'Stacks that do not reach the program, by where they end', columns,
    c.ends.map((o) => [o.object, bytesText(o.allocated_bytes), bytesText(o.live_at_peak_bytes), bytesText(o.live_at_end_bytes), countText(o.stacks)]))) : null;
}

function sitesSection(w) {
  const s = w.stat;
  const c = s.call_sites;
  if (!c) {
    return null;
  }
  const missing = c.unresolved_addresses ? ` ${countText(c.unresolved_addresses)} addresses could not be resolved: the recorded files are ` +
    'missing or have no symbols.' : '';
  const covered = s.stack_coverage;
  return section('sites', 'Call sites', element('p.note', null, (w.profile ? '' : `The call sites that hold the most memory, of ${countText(c.sites)}. `) +
    'A call site is a whole stack: one function can appear in several rows. Inlined functions are included.' + missing),
  covered ? element('p.note', {'data-coverage': ''}, coverageText(covered)) : null,
  w.profile ? new SiteTable(w).element : [c.at_peak.length ? sitesTable('sites-at-peak', 'Live at peak, by call site', c.at_peak, 'live_at_peak', c.peak_live_bytes) : null,
    c.at_end.length ? sitesTable('sites-at-end', 'Live at the end, by call site', c.at_end, 'live_at_end', c.live_at_end_bytes)
      : element('p', null, 'All blocks are freed at the end.')], covered ? coverageTable(covered) : null);
}
