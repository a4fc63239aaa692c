// Call sites.

function baseName(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}

// The brackets of "operator<" and similar operators enclose nothing.
const OPERATOR = /^operator(?:\(\)|\[\]|[<>=\-+*/%^&|!~,]+)/;

// Returns the index after the group that begins with the bracket at `from`.
function groupEnd(name, from) {
  let depth = 0;
  for (let i = from; i < name.length; i++) {
    const operator = OPERATOR.exec(name.slice(i));
    if (operator) {
      i += operator[0].length - 1;
    } else if ('(<{['.includes(name[i])) {
      depth++;
    } else if (')>}]'.includes(name[i]) && name.slice(i - 1, i + 1) !== '->' && --depth === 0) {
      return i + 1;
    }
  }
  return name.length;
}

// Omits the parameters, and the template arguments if `templates` is set: "f<…>(…)".
function withoutArguments(name, templates) {
  let text = '';
  for (let i = 0; i < name.length;) {
    const operator = OPERATOR.exec(name.slice(i));
    const end = '(<{['.includes(name[i]) ? groupEnd(name, i) : i + 1;
    const group = name.slice(i, end);
    const kept = operator ? operator[0] : group.length < 3 || group === '(anonymous namespace)' ? group
      : name[i] === '(' ? '(…)' : name[i] === '<' && templates ? '<…>' : group;
    text += kept;
    i = operator ? i + kept.length : end;
  }
  return text;
}

// Returns the name in at most `max` characters. Names are cut between their parts, like in
// shorten_name of src/analysis/symbols/shorten.c.
function shortName(name, max) {
  const forms = [name, withoutArguments(name, false), withoutArguments(name, true)];
  const words = /^(?:.* )?((?:operator .*|[^ ]*)\(.*|[^ ]*)$/.exec(forms[2]);
  const scopes = (words ? words[1] : forms[2]).split('::');
  scopes.forEach((_, i) => forms.push((i ? '…::' : '') + scopes.slice(i).join('::')));
  return forms.find((f) => f.length <= max) || shortened(scopes[scopes.length - 1], max);
}

function placeInFile(f) {
  const object = baseName(f.module || '');
  return f.file ? `${baseName(f.file)}:${f.line}` : f.function.startsWith(`${object}+0x`) ? '' : object;
}

// "grow (tree.c:12)", "grow (libfoo.so)", "libfoo.so+0x12".
function frameText(f, max) {
  const place = placeInFile(f);
  return shortName(f.function, max || Infinity) + (place ? ` (${place})` : '');
}

function isRuntime(f) {
  return /^(?:node|(?:lib)?python3)(?:[.\d].*)?$/.test(baseName(f.module || '')) || /\/lib\/python3/.test(f.module);
}

function isScript(f) {
  const named = /^(?:JS:|LazyCompile:|Function:|py::)/.test(f.function);
  return !f.module && (named ? !/ node:|:</.test(f.function) : Boolean(f.file));
}

// The innermost frame of a script, or of an extension that the script has called.
function scriptFrame(frames) {
  const found = frames.filter((f) => !f.wrapper && !isRuntime(f) && (f.module || isScript(f)));
  return found.some(isScript) ? found[0] : undefined;
}

// Returns the frame that represents a call site, like stack_shown in src/analysis/symbols/stack.c.
// This is the innermost frame of the program that is not an allocation wrapper, or the script's
// frame that has called the runtime.
function ownFrame(frames) {
  const own = frames.filter((f) => f.function && !f.library);
  const shown = own.find((f) => !f.wrapper) || own[own.length - 1] || frames[0];
  const outer = (list) => list.slice(list.indexOf(shown) + 1);
  return shown && isRuntime(shown) && (scriptFrame(outer(own)) || outer(frames).find(isScript)) || shown;
}

const LONGEST_CYCLE = 8; // functions

// Returns how often the `period` frames that start at `from` repeat in succession.
function repeatsOf(frames, from, period) {
  const key = (f) => f.function + '\n' + f.module;
  let i = from;
  while (i + period < frames.length && key(frames[i]) === key(frames[i + period])) {
    i++;
  }
  return 1 + Math.floor((i - from) / period);
}

// Returns the frames and the number of their repetitions. Recursive calls are a single row.
function rowsOf(frames) {
  const rows = [];
  for (let i = 0; i < frames.length;) {
    let [best, period] = [1, 1];
    for (let p = 1; p <= LONGEST_CYCLE; p++) {
      const repeats = repeatsOf(frames, i, p);
      if (repeats > 1 && repeats * p > best * period) {
        [best, period] = [repeats, p];
      }
    }
    frames.slice(i, i + period).forEach((frame) => rows.push({frame, repeats: best}));
    i += best * period;
  }
  return rows;
}

function frameItem({frame, repeats}) {
  return element('li.frame' + (frame.library || frame.wrapper ? '.library' : ''), {title: frame.wrapper ? 'allocation wrapper' : frame.library ? 'library' : null},
    frameText(frame) + (repeats > 1 ? ` ×${repeats}` : ''));
}

function siteCell(site) {
  if (!site.frames.length) {
    return '(unknown)';
  }
  const own = ownFrame(site.frames);
  const at = site.frames.indexOf(own);
  const via = at ? ` via ${shortName(site.frames[at - 1].function, 60)}` : '';
  return [element('span.frame', null, frameText(own) + via), site.frames.length > 1 ? details('stack',
    element('ol.frames', null, rowsOf(site.frames).map(frameItem))) : null];
}

// which: 'live_at_peak' or 'live_at_end'.
function sitesTable(name, caption, sites, which, all) {
  const columns = {bytes: 'bytes', share: 'share', blocks: 'blocks', allocs: 'allocations', site: textColumn('call site')};
  return table(name, caption, columns, sites.map((site) => [bytesText(site[which + '_bytes']), percentText(share(site[which + '_bytes'], all)),
    countText(site[which + '_blocks']), countText(site.allocs), siteCell(site)]));
}

// Returns the shares of bytes whose stacks reach the program, or an empty text if they are unknown.
function coverageText(c) {
  const part = (of, key) => Math.floor(1000 * share(of[key], c.all[key])) / 10;
  const parts = (of) => [['allocated_bytes', 'allocated bytes'], ['live_at_peak_bytes', 'bytes live at the peak'], ['live_at_end_bytes', 'bytes live at the end']]
    .filter(([key]) => c.all[key]).map(([key, what]) => `${part(of, key).toFixed(1)} % of ${what}`).join(', ');
  const sampled = c.stack_sample_bytes ? ' (estimated from sampled stacks)' : '';
  const others = [['loading', 'Constructors of libraries', ", before the program's first allocation"], ['threads', 'Threads of libraries', ''],
    ['before', 'The program', ' before the recording']].filter(([key]) => c[key].allocated_bytes || c[key].live_at_peak_bytes)
    .map(([key, which, rest]) => ` ${which} allocated ${parts(c[key])}${rest}.`).join('');
  return parts(c.all) ? `Stacks reach the program's own code for ${parts(c.reached)}${sampled}.${others}` : '';
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
