// use.mjs CHROMIUM PAGE.html [--axe axe.min.js] [--shots PREFIX] [--compared COMPARED.html]
// Uses a report of one workload with call sites, with the mouse and with the keyboard alone, and
// prints a line for each failed expectation. Exits with 1 if there are any. --axe also checks
// accessibility, --shots takes pictures, --compared also checks a report of two workloads.
import {readFileSync, writeFileSync} from 'node:fs';
import {resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {complaints, evaluate, finish, launch, open, requests, send} from './browser.mjs';

const [chromium, page, ...rest] = process.argv.slice(2);
const option = (name) => (rest.includes(name) ? rest[rest.indexOf(name) + 1] : null);
const url = pathToFileURL(resolve(page)).href;
const wrong = [];
let checks = 0;

function expect(what, ok, seen) {
  checks++;
  if (!ok) {
    wrong.push(`${what}: ${JSON.stringify(seen)}`);
  }
}

const SHIFT = 8;

async function key(name, modifiers = 0) {
  const text = name === 'Enter' ? '\r' : name.length === 1 ? name : undefined;
  await send('Input.dispatchKeyEvent', {type: 'keyDown', key: name, code: name, text, modifiers,
    windowsVirtualKeyCode: {Enter: 13, Escape: 27, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Tab: 9}[name]});
  await send('Input.dispatchKeyEvent', {type: 'keyUp', key: name, code: name, modifiers});
}

async function mouse(type, x, y) {
  await send('Input.dispatchMouseEvent', {type, x, y, button: 'left', buttons: type === 'mouseReleased' ? 0 : 1, clickCount: 1});
}

async function click(selector) {
  const at = await place(selector);
  await mouse('mousePressed', at.x + at.width / 2, at.y + at.height / 2);
  await mouse('mouseReleased', at.x + at.width / 2, at.y + at.height / 2);
}

// Scrolls the element into view and returns its position.
function place(selector) {
  return evaluate(`(() => { const e = document.querySelector(${JSON.stringify(selector)}); e.scrollIntoView({block: 'center'});
    const r = e.getBoundingClientRect(); return {x: r.x, y: r.y, width: r.width, height: r.height}; })()`);
}

async function brush(from, to) {
  const at = await place('#overview .lines');
  const x = (part) => at.x + 80 + (at.width - 90) * part;
  await mouse('mousePressed', x(from), at.y + 60);
  for (let i = 1; i <= 4; i++) {
    await send('Input.dispatchMouseEvent', {type: 'mouseMoved', x: x(from + (to - from) * i / 4), y: at.y + 60, button: 'left', buttons: 1});
  }
  await mouse('mouseReleased', x(to), at.y + 60);
}

const text = (selector) => evaluate(`document.querySelector(${JSON.stringify(selector)})?.textContent.replace(/\\s+/g, ' ').trim() ?? null`);
const column = (table, name) => evaluate(`[...document.querySelectorAll('[data-table="${table}"] [data-column="${name}"]')].map((c) => c.textContent)`);
const focus = (selector) => evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`);
const selected = () => evaluate("document.querySelector('.selection').hidden ? '' : document.querySelector('.selection').textContent");
const nodes = () => evaluate("[...document.querySelectorAll('.node')].map((n) => ({name: n.textContent, label: n.getAttribute('aria-label'), width: n.offsetWidth, focus: n === document.activeElement}))");

// Converts "1.5 MiB" to bytes.
function bytesOf(shown) {
  const [, number, unit] = shown.replace('–', '0 B').match(/([-+]?[\d.]+)\s*(\w+)/);
  return Number(number) * 1024 ** ['B', 'KiB', 'MiB', 'GiB'].indexOf(unit);
}

const falls = (values) => values.every((v, i) => !i || values[i - 1] >= v);

async function fold() {
  const bottom = await evaluate("Math.max(...['.facts', '#overview .lines', '#what-to-do', '[data-table=top-sites]'].map((s) => document.querySelector(s).getBoundingClientRect().bottom))");
  expect('above the fold at 1280 x 900', bottom <= 900, bottom);
  const places = await column('top-sites', 'place');
  expect('file and line of the top sites', places.some((p) => /^[^ ]+:\d+$/.test(p)), places);
  expect('findings', await evaluate("document.querySelectorAll('#overview .findings li').length <= 3"), 'more than three');
}

async function selections() {
  const before = [await text('[data-table="top-sites"] caption'), await column('sites', 'allocs'), await text('.icicle + .readout')];
  await brush(0.3, 0.6);
  expect('brushed', /^Selected: .* to .*\./.test(await selected()), await selected());
  expect('the command line for the same span', /stat --by site --from \S+ --to \S+ /.test(await selected()), await selected());
  expect('top sites follow', (await text('[data-table="top-sites"] caption')) !== before[0], before[0]);
  expect('the site table follows', JSON.stringify(await column('sites', 'allocs')) !== JSON.stringify(before[1]), before[1]);
  await click('.selection button');
  expect('the whole run again', (await selected()) === '', await selected());
  expect('as before', JSON.stringify(await column('sites', 'allocs')) === JSON.stringify(before[1]), before[1]);
  await focus('#overview .lines');
  await key('Home');
  for (let i = 0; i < 5; i++) {
    await key('ArrowRight', SHIFT);
  }
  expect('selected by keyboard', /^Selected/.test(await selected()), await selected());
  const short = await selected();
  await key('-');
  expect('a longer span by keyboard', (await selected()) !== short, short);
  await key('0');
  expect('the whole run by keyboard', (await selected()) === '', await selected());
}

async function flames() {
  const all = await nodes();
  expect('functions are drawn', all.length > 3, all.length);
  await focus('.node[tabindex="0"]');
  await key('ArrowDown');
  await key('ArrowDown');
  const at = (await nodes()).find((n) => n.focus);
  expect('arrows move', at && at.name !== all[0].name, at);
  await key('Enter');
  const zoomed = await nodes();
  const widest = Math.max(...zoomed.map((n) => n.width));
  expect('Enter zooms in', zoomed.find((n) => n.label === at.label).width === widest && zoomed.length <= all.length, at);
  await key('Escape');
  expect('Escape zooms out', JSON.stringify((await nodes()).map((n) => n.width)) === JSON.stringify(all.map((n) => n.width)), 'other widths');
  await click('.node:nth-child(4)');
  const clicked = await nodes();
  expect('a click zooms in', clicked.length <= all.length && clicked[3].width === clicked[0].width, clicked.length);
  await key('Escape');
  const word = at.name.slice(0, 5).toLowerCase();
  await focus('[data-search="icicle"]');
  await send('Input.insertText', {text: word});
  const found = await evaluate("[...document.querySelectorAll('.node.match')].map((n) => n.getAttribute('aria-label').toLowerCase())");
  expect('search finds', found.length > 0, word);
  expect('with its share', /%/.test(await text('.tools .readout')), await text('.tools .readout'));
  await evaluate("(() => { const e = document.querySelector('[data-search=icicle]'); e.value = ''; e.dispatchEvent(new Event('input')); })()");
  await click('[data-fold]');
  const unfolded = await nodes();
  expect('libraries are unfolded', unfolded.length > all.length && (await evaluate("document.querySelectorAll('.node.library').length")) > 0, unfolded.length);
  await click('[data-fold]');
  for (const weight of ['end', 'allocated', 'allocs', 'growth', 'peak']) {
    await click(`[value="${weight}"]`);
    expect('the table of ' + weight, falls((await column('functions', 'total')).map((v) => (weight === 'allocs' ? Number(v.replace(/\D/g, '')) : bytesOf(v)))), weight);
  }
}

const label = (selector) => evaluate(`document.querySelector(${JSON.stringify(selector)}).getAttribute('aria-label').replace(/\\s+/g, ' ')`);
const tab = () => evaluate("[...document.querySelectorAll('[role=tab][aria-selected=true]')].map((e) => e.dataset.tab).join()");
const openTable = () => evaluate("document.querySelectorAll('#icicle details').forEach((d) => { d.open = true; })");

async function search(word) {
  await evaluate(`(() => { const e = document.querySelector('[data-search=icicle]'); e.value = ${JSON.stringify(word)}; e.dispatchEvent(new Event('input')); })()`);
  return evaluate("document.querySelectorAll('.node.match').length");
}

async function tabs() {
  const profile = await evaluate("JSON.parse(document.getElementById('data').textContent).workloads[0].profile");
  const all = await label('.node');
  await openTable();
  const [name, selves] = [(await column('functions', 'function'))[0], await column('functions', 'self')];
  await focus('[data-tab="down"]');
  await key('ArrowRight');
  expect('an arrow opens the next tab', (await tab()) === 'up' && (await evaluate('document.activeElement.dataset.tab')) === 'up', await tab());
  expect('bottom-up has all bytes', (await label('.node')) === all, [all, await label('.node')]);
  const innermost = await evaluate("[...document.querySelectorAll('.node[aria-level=\"2\"]')].map((e) => e.getAttribute('aria-label').replace(/\\s+/g, ' '))");
  const first = selves.map((v, i) => [bytesOf(v), v.replace(/\s+/g, ' ')]).sort((a, b) => b[0] - a[0])[0];
  expect('its functions have their own bytes', innermost.length > 0 && innermost[0].includes(first[1]), [innermost, first]);
  await openTable();
  await click(`[data-function="${name}"]`);
  expect('a function of the table opens its callers and callees', (await tab()) === 'function' && (await evaluate("document.querySelector('[data-choose]').value")) === name, await tab());
  const roots = await evaluate("[...document.querySelectorAll('.icicle')].map((e) => e.querySelector('.node').getAttribute('aria-label').split(';')[0])");
  expect('the function is at the root of both trees', roots.length === 2 && roots[0] === roots[1] && roots[0].startsWith(name), roots);
  await click('[data-tab="temporary"]');
  await openTable();
  const blocks = profile.short_lived_blocks.reduce((a, b) => a + b, 0);
  const shown = Number((await label('.node')).split(', ')[1].replace(/\D/g, ''));
  expect('short-lived blocks of all call sites', blocks > 0 && shown === blocks, [shown, blocks]);
  expect('the table of temporaries', falls((await column('temporaries', 'total')).map((v) => Number(v.replace(/\D/g, '')))), await column('temporaries', 'total'));
  for (const which of ['down', 'up', 'function', 'temporary']) {
    await click(`[data-tab="${which}"]`);
    expect('search finds in the tab ' + which, (await search('main')) > 0, which);
    expect('search finds nothing else in the tab ' + which, (await search('no such function')) === 0, which);
    await search('');
  }
  await click('[data-tab="down"]');
  expect('top-down again', (await label('.node')) === all, all);
}

// The second workload has twice the blocks of app+0x20, and none of app+0x30.
async function compared(path) {
  await open(pathToFileURL(resolve(path)).href, 1280, false);
  await openTable();
  expect('both values and the change', (await label('.node')) === 'all, 1.07 KiB in the first recording, 2 KiB in the second: +948 B (+86 %)', await label('.node'));
  const of = (table, key) => column(table, key).then((all) => all.map((v) => v.replace(/\s+/g, ' ')));
  expect('functions by change', JSON.stringify(await of('changes', 'change')) === JSON.stringify(['+1 KiB (+100 %)', '+948 B (+86 %)', '−76 B (−100 %)']), await of('changes', 'change'));
  expect('grown and new functions have a colour', (await evaluate("document.querySelectorAll('.node.grew2').length")) === 3, 'other colours');
  await click('[name^="side"][value="0"]');
  expect('shrunk functions with the widths of the first', (await evaluate("document.querySelectorAll('.node.shrank2').length")) === 1, 'other colours');
  await click('[data-tab="up"]');
  expect('bottom-up', (await search('app+0x30')) === 1, 'not found');
  expect('the pages complain about nothing', complaints.length === 0, complaints);
}

async function siteTable() {
  expect('sorted by the peak', falls((await column('sites', 'peak')).map(bytesOf)), await column('sites', 'peak'));
  await click('[data-sort="allocated"]');
  expect('sorted by a click', falls((await column('sites', 'allocated')).map(bytesOf)), await column('sites', 'allocated'));
  expect('aria-sort is descending', (await evaluate("document.querySelector('[data-sort=allocated]').closest('th').getAttribute('aria-sort')")) === 'descending', '');
  await focus('[data-sort="allocated"]');
  await key('Enter');
  expect('reversed by keyboard', falls((await column('sites', 'allocated')).map(bytesOf).reverse()), await column('sites', 'allocated'));
  const rows = (await column('sites', 'site')).length;
  for (const filter of ['thread', 'size', 'life']) {
    await evaluate(`(() => { const e = document.querySelector('[data-filter=${filter}]'); e.value = e.options[1].value; e.dispatchEvent(new Event('change')); })()`);
    const left = await column('sites', 'site');
    expect('filtered by ' + filter, /that the filters let through/.test(await text('#sites [role=status]')) && left.length <= rows, left.length);
    await evaluate(`(() => { const e = document.querySelector('[data-filter=${filter}]'); e.value = ''; e.dispatchEvent(new Event('change')); })()`);
  }
  await focus('[data-filter="word"]');
  await send('Input.insertText', {text: 'no such function'});
  expect('searched', (await column('sites', 'site')).length === 0, await column('sites', 'site'));
  await evaluate("(() => { const e = document.querySelector('[data-filter=word]'); e.value = ''; e.dispatchEvent(new Event('input')); })()");
}

async function addresses() {
  const cells = '#addresses .addressmap [role="gridcell"]';
  expect('the heap by address is drawn', (await evaluate(`document.querySelectorAll('${cells}').length`)) > 0, 'no cell');
  const said = () => text('[data-address-details]');
  // A click on a cell with sparse pages lists the call sites that pin them.
  const sparse = `${cells}:is(.occupied-1, .occupied-2, .occupied-3)`;
  await click(sparse);
  expect('a click shows the stranded bytes', /0x[0-9a-f]+ to 0x[0-9a-f]+ at .* of .* resident is occupied; .* are stranded/.test(await said()), await said());
  const pins = await column('address-pins', 'site');
  expect('and which call sites pin it', pins.length > 0 && pins.some((p) => /\(heap\.c:\d+\)/.test(p)), pins);
  expect('sorted by stranded bytes', falls((await column('address-pins', 'stranded')).map(bytesOf)), await column('address-pins', 'stranded'));
  const first = await said();
  const [rows, columns] = await evaluate("[document.querySelectorAll('.addressmap [role=row]').length, document.querySelector('.addressmap [role=row]').childElementCount]");
  for (const [to, other] of [['ArrowDown', 'ArrowUp'], ['ArrowRight', 'ArrowLeft']]) {
    const n = to === 'ArrowDown' ? rows : columns;
    await key(to);
    const moved = (await said()) !== first;
    if (!moved) {
      await key(other);
    }
    expect('moved by ' + to, (await said()) !== first || n === 1, [n, first]);
    await key(moved ? other : to);
    expect('and back', (await said()) === first, await said());
  }
  expect('the selected cell has the focus', (await evaluate("document.activeElement.getAttribute('aria-selected')")) === 'true', '');
  expect('the table has all ranges', (await column('address-map', 'resident')).length === rows, rows);
}

async function faults(path, what) {
  await evaluate(readFileSync(path, 'utf8') + ';0');
  await evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })");
  const found = await evaluate(`axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
    .map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120) + ' ' + n.any.map((a) => a.message).join('; ')).join(' | ')))`);
  expect('accessible, ' + what, found.length === 0, found);
}

async function shoot(name, height) {
  const width = await evaluate('document.documentElement.clientWidth');
  const all = await evaluate('document.documentElement.scrollHeight');
  const {data} = await send('Page.captureScreenshot', {clip: {x: 0, y: 0, width, height: Math.min(height || 1e9, all), scale: 1}, captureBeyondViewport: true});
  writeFileSync(`${option('--shots')}-${name}.png`, Buffer.from(data, 'base64'));
}

async function main() {
  await launch(chromium);
  await open(url, 1280, false);
  const ms = await evaluate('performance.now()');
  const drawn = await evaluate("performance.getEntriesByName('drawn')[0]?.startTime ?? null");
  await fold();
  await selections();
  await flames();
  await tabs();
  await siteTable();
  await addresses();
  for (const [width, dark] of [[1280, false], [1280, true], [360, false], [360, true]]) {
    const name = `${width}-${dark ? 'dark' : 'light'}`;
    await open(url, width, dark);
    const lines = await evaluate(`[...document.querySelectorAll('[data-table="top-sites"] [data-column="place"] .frame')].map((e) => e.getClientRects().length)`);
    expect('file and line fit on one line, ' + name, lines.length > 0 && lines.every((n) => n === 1), lines);
    expect('no wider than ' + width, !(await evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth')), name);
    if (option('--shots')) {
      await shoot(name);
    }
    if (option('--axe')) {
      await faults(option('--axe'), name);
    }
  }
  if (option('--compared')) {
    await compared(option('--compared'));
    requests.splice(0, requests.length, ...requests.filter((r) => r !== pathToFileURL(resolve(option('--compared'))).href));
  }
  expect('complaints', complaints.length === 0, complaints);
  expect('requests', requests.every((r) => r === url), requests);
  finish(wrong.length > 0 ? 1 : 0, [...wrong, `${checks} expectations, ${wrong.length} not met; drawn after ${Math.round(drawn ?? ms)} ms`].join('\n'));
}

main().catch((e) => finish(2, e.stack));
