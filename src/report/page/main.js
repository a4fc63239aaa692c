// Assembles the report.

const UNKNOWN = '(not recorded)';

// Returns the command line of the process whose timeline is shown.
function wordsOf(s) {
  const p = s.processes.find((x) => x.pid === (s.timeline || s.growth).pid) || s.processes[0];
  return p && p.argv.length ? p.argv : [p && p.exe ? p.exe : UNKNOWN];
}

function shortened(text, max) {
  return text.length > max ? text.slice(0, max - 1) + '…' : text;
}

function titleOf(data) {
  if (data.mode === 'diff') {
    return 'Comparison of two heaps';
  }
  const first = data.workloads.length ? wordsOf(data.workloads[0].stat)[0] : null;
  const program = first === UNKNOWN ? 'a program' : first && shortened(first.split('/').pop(), 40);
  return program ? `Heap usage of ${program}` : 'Allocator results';
}

function workloadLine(w) {
  const s = w.stat;
  const parts = [`${countText(s.events)} events`, s.threads === 1 ? 'one thread' : `${countText(s.threads)} threads`,
    s.processes.length > 1 ? `${s.processes.length} processes` : null, s.duration_ns ? nsText(s.duration_ns) : null,
    `${bytesText(s.requested_bytes)} allocated`, `peak ${bytesText(s.peak_live_bytes)} live`];
  return [element('p.lead', null, element('b', null, w.name), ': ' + parts.filter(Boolean).join(', ') + '.'),
    element('p.note', null, 'Command: ', element('code', null, shortened(wordsOf(s).join(' '), 400)))];
}

function findingsSection(items) {
  return !items.length ? null : section('findings', 'Findings', element('ul.findings', null, items.map(findingItem)), element('p.note', null,
    'Computed from the figures below. Highlighted findings are those where a change may help. The thresholds are in docs/reference/report.md.'));
}

function diffSection(data) {
  if (!data.diff) {
    return null;
  }
  const sides = [0, 1].map((side) => [...data.workloads, ...data.results].find((x) => x.side === side));
  const rows = data.diff.map((r) => [r.of ? `${r.label} (${r.of})` : r.label, TEXT_OF[r.unit](r.a), TEXT_OF[r.unit](r.b),
    r.a > 0 && isNumber(r.b) ? (r.b / r.a).toPrecision(3) + ' ×' : NONE]);
  return section('diff', 'Side by side', table('diff', 'Main figures', {figure: textColumn(''), a: sides[0] ? sides[0].name : NONE,
    b: sides[1] ? sides[1].name : NONE, ratio: 'second / first'}, rows));
}

function contents(sections) {
  return element('nav', {'aria-label': 'Contents'}, element('ul', null, sections.map((s) => element('li', null,
    element('a', {href: '#' + s.id}, s.querySelector('h2').textContent)))));
}

function build(data) {
  const {results} = data;
  const workloads = data.workloads.filter((w) => !isAggregate(w));
  const aggregates = data.workloads.filter(isAggregate);
  const single = data.mode === 'report' && workloads.length === 1 && !aggregates.length;
  const several = workloads.length > 1;
  const found = data.findings || [];
  selection.workloads = workloads;
  const chart = workloads.length || results.length ? [axisChoice(workloads), memoryChart(workloads, results).element] : null;
  const top = single ? overview(workloads[0], found, chart) : null;
  const sections = [
    ...(single ? [] : [findingsSection(found), diffSection(data)]),
    ...(single ? [] : resultSections(results, workloads, data.figures)),
    single || !chart ? null : section('overview', 'Memory', chart),
    ...(data.mode === 'diff' && several ? [workloads.every((w) => w.profile) ? stacksSection(workloads, 'Flame graph of both') : null,
      section('usage', 'Heap usage', pairedSizes(workloads))]
      : workloads.flatMap((w) => sitesSections(w, several))),
    ...(single ? resultSections(results, workloads, data.figures) : []),
    chart ? memorySection(workloads, results) : null,
    ...(data.mode === 'diff' ? [] : workloads.map(addressMapSection)),
    ...(data.mode === 'diff' && several ? [] : workloads.flatMap((w) => usageSections(w, data.stat_figures))),
    ...aggregates.flatMap((w) => aggregateSections(w, data.stat_figures)),
    single ? findingsSection(found) : null,
  ].filter(Boolean);
  document.title = titleOf(data) + ' · heaptape';
  append(document.getElementById('top'), [element('h1', null, titleOf(data)), single ? factsOf(workloads[0]) : data.workloads.map(workloadLine)]);
  const main = document.getElementById('main');
  main.replaceChildren();
  append(main, [top, contents(sections), selectionBar(workloads), sections]);
  append(main, element('footer', null, `heaptape ${data.heaptape}. Sizes are requested sizes; KiB, MiB and GiB are powers of 1,024.`));
}

function axisNow() {
  const chosen = document.querySelector('input[name=axis]:checked');
  return chosen ? chosen.value : 'events';
}

// Replaces the report by an error if the data do not have the form that stat, replay and compare
// write.
function showError(error) {
  document.getElementById('main').replaceChildren(element('p', null, `The data of this report cannot be shown: ${error.message}.`));
  throw error;
}

function start() {
  try {
    const data = JSON.parse(document.getElementById('data').textContent);
    selection.axis = isTimed(data.workloads.filter((w) => !isAggregate(w))) ? 'ns' : 'events';
    build(data);
    followSelection(() => charts.forEach((c) => c.follow()));
    drawLines(axisNow());
  } catch (error) {
    showError(error);
  }
  // A canvas does not change with the style, and a canvas that is drawn while Chromium prints stays
  // empty. The printed page therefore shows the charts of the screen, and page.css inverts dark
  // charts.
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => matchMedia('print').matches || drawLines(axisNow()));
  performance.mark('drawn');
  document.documentElement.dataset.ready = 'yes';
}

start();
