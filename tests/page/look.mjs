// look.mjs CHROMIUM PAGE.html [--width N] [--dark] [--print] [--run SCRIPT] [--twice] [--shot OUT.png --top Y --height N]
// Opens a page in headless Chromium over its debugging pipe and prints one JSON object: what the browser complained of, what it asked the
// network for, which charts were drawn, and the tables: name, caption, and the texts of the cells of each row by column; --run does something to it before, --twice looks again at 360 pixels in the
// dark, --shot takes a picture. Needs nothing but Node.
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

const [chromium, page, ...rest] = process.argv.slice(2);
const options = {};
for (let i = 0; i < rest.length; i++) {
  options[rest[i].slice(2)] = rest[i + 1] === undefined || rest[i + 1].startsWith('--') ? true : rest[++i];
}

const profile = mkdtempSync(join(tmpdir(), 'look-'));
const browser = spawn(chromium, ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars',
  '--user-data-dir=' + profile, '--remote-debugging-pipe', 'about:blank'], {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
const watchdog = setTimeout(() => finish(3, 'timed out'), 90000);

function finish(status, text) {
  clearTimeout(watchdog);
  browser.kill('SIGKILL');
  try {
    rmSync(profile, {recursive: true, force: true, maxRetries: 5});
  } catch {
    // Left for the system to clean.
  }
  writeFileSync(1, text + '\n');
  process.exit(status);
}

let next = 1;
let session;
const waiting = new Map();
const complaints = [];
const requests = [];
let unread = '';

function send(method, params = {}) {
  const id = next++;
  browser.stdio[3].write(JSON.stringify({id, method, params, sessionId: session}) + '\0');
  return new Promise((done, failed) => waiting.set(id, {done, failed}));
}

function receive(message) {
  if (message.id && waiting.has(message.id)) {
    const {done, failed} = waiting.get(message.id);
    waiting.delete(message.id);
    message.error ? failed(new Error(JSON.stringify(message.error))) : done(message.result);
    return;
  }
  const p = message.params;
  if (message.method === 'Runtime.exceptionThrown') {
    complaints.push(p.exceptionDetails.exception?.description || p.exceptionDetails.text);
  } else if (message.method === 'Runtime.consoleAPICalled' && p.type !== 'log') {
    complaints.push(p.args.map((a) => a.value || a.description).join(' '));
  } else if (message.method === 'Log.entryAdded') {
    complaints.push(p.entry.text);
  } else if (message.method === 'Network.requestWillBeSent') {
    requests.push(p.request.url.slice(0, 200));
  }
}

browser.stdio[4].on('data', (chunk) => {
  const parts = (unread + chunk).split('\0');
  unread = parts.pop();
  parts.forEach((part) => receive(JSON.parse(part)));
});

async function evaluate(code) {
  const r = await send('Runtime.evaluate', {expression: code, returnByValue: true, awaitPromise: true});
  if (r.exceptionDetails) {
    throw new Error(r.exceptionDetails.exception?.description || r.exceptionDetails.text);
  }
  return r.result.value;
}

// In the page: charts with how many pixels of each are painted, and tables.
const LOOK = `(() => {
  const painted = (c) => {
    const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    let n = 0;
    for (let i = 3; i < d.length; i += 4) { n += d[i] > 0; }
    return n;
  };
  const text = (e) => e.textContent.replace(/\\s+/g, ' ').trim();
  return {
    title: document.title,
    ready: document.documentElement.dataset.ready === 'yes',
    wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
    charts: [...document.querySelectorAll('figure:not([hidden]) .lines')].map((l) => ({
      title: text(l.closest('figure').querySelector('figcaption')),
      painted: Math.max(0, ...[...l.querySelectorAll('canvas')].map(painted)),
    })),
    tables: [...document.querySelectorAll('table')].map((t) => ({
      name: t.dataset.table, caption: text(t.caption),
      rows: [...t.tBodies[0].rows].map((r) => Object.fromEntries([...r.querySelectorAll('[data-column]')].map((c) => [c.dataset.column, text(c)]))),
    })),
    coverage: [...document.querySelectorAll('[data-coverage]')].map(text),
    findings: [...document.querySelectorAll('.findings li')].map(text),
    unnamed: [...document.querySelectorAll('button, input, a, figure')].filter((e) => e.getClientRects().length && !(e.getAttribute('aria-labelledby') ||
      e.closest('label') || text(e))).map((e) => e.outerHTML.slice(0, 100)),
    ids: [...document.querySelectorAll('[id]')].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i),
  };
})()`;

async function shoot(path) {
  const size = await evaluate('[document.documentElement.scrollWidth, document.documentElement.scrollHeight]');
  const clip = {x: 0, y: Number(options.top || 0), width: Number(options.width || 1280),
    height: Math.min(Number(options.height || 1e9), size[1] - Number(options.top || 0)), scale: 1};
  const {data} = await send('Page.captureScreenshot', {clip, captureBeyondViewport: true});
  writeFileSync(path, Buffer.from(data, 'base64'));
}

async function ready() {
  for (let i = 0; i < 200; i++) {
    if (await evaluate("document.readyState === 'complete' && document.documentElement.dataset.ready === 'yes'")) {
      return;
    }
    await new Promise((r) => setTimeout(r, 50));
  }
}

async function open(url, width, dark) {
  await send('Emulation.setDeviceMetricsOverride', {width, height: 900, deviceScaleFactor: 1, mobile: width < 600});
  await send('Emulation.setEmulatedMedia', {media: options.print ? 'print' : '',
    features: [{name: 'prefers-color-scheme', value: dark ? 'dark' : 'light'}]});
  await send('Page.navigate', {url});
  await ready();
}

async function main() {
  const {targetInfos} = await send('Target.getTargets');
  const target = targetInfos.find((t) => t.type === 'page');
  session = (await send('Target.attachToTarget', {targetId: target.targetId, flatten: true})).sessionId;
  for (const domain of ['Page', 'Runtime', 'Log', 'Network']) {
    await send(domain + '.enable');
  }
  const url = pathToFileURL(resolve(page)).href;
  await open(url, Number(options.width || 1280), options.dark);
  if (options.run) {
    await evaluate(options.run);
  }
  const seen = await evaluate(LOOK);
  if (options.shot) {
    await shoot(options.shot);
  }
  if (options.twice) {
    await open(url, 360, true);
    seen.narrow = await evaluate(LOOK);
  }
  finish(0, JSON.stringify({...seen, complaints, requests: requests.filter((r) => r !== url)}));
}

main().catch((e) => finish(2, e.stack));
