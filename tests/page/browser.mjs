// Controls headless Chromium over its debugging pipe. Needs only Node.
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

// Ends a browser that hangs. On a busy machine, a session may take minutes.
const TIMEOUT_MS = 600000;

let browser;
let profile;
let watchdog;
// Starts Chromium with one page, and collects messages and requests of the page.
export async function launch(chromium) {
  profile = mkdtempSync(join(tmpdir(), 'look-'));
  browser = spawn(chromium, ['--headless', '--no-sandbox', '--disable-gpu', '--in-process-gpu', '--disable-software-rasterizer',
    '--disable-quic', '--no-first-run', '--disable-extensions', '--disable-default-apps', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars',
    '--user-data-dir=' + profile, '--remote-debugging-pipe', 'about:blank'], {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
  watchdog = setTimeout(() => finish(3, 'timed out'), TIMEOUT_MS);
  browser.stdio[4].on('data', (chunk) => {
    const parts = (unread + chunk).split('\0');
    unread = parts.pop();
    parts.forEach((part) => receive(JSON.parse(part)));
  });
  const {targetInfos} = await send('Target.getTargets');
  const target = targetInfos.find((t) => t.type === 'page');
  session = (await send('Target.attachToTarget', {targetId: target.targetId, flatten: true})).sessionId;
  for (const domain of ['Page', 'Runtime', 'Log', 'Network']) {
    await send(domain + '.enable');
  }
}

// Prints the text and ends Chromium and this process.
export function finish(status, text) {
  clearTimeout(watchdog);
  browser.kill('SIGKILL');
  try {
    rmSync(profile, {recursive: true, force: true, maxRetries: 5});
  } catch {
    // The system removes the directory later.
  }
  writeFileSync(1, text + '\n');
  process.exit(status);
}

let next = 1;
let session;
const waiting = new Map();
export const complaints = [];
export const requests = [];
let unread = '';

export function send(method, params = {}) {
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

export async function evaluate(code) {
  const r = await send('Runtime.evaluate', {expression: code, returnByValue: true, awaitPromise: true});
  if (r.exceptionDetails) {
    throw new Error(r.exceptionDetails.exception?.description || r.exceptionDetails.text);
  }
  return r.result.value;
}

async function ready() {
  for (let i = 0; i < 1200; i++) {
    if (await evaluate("document.readyState === 'complete' && document.documentElement.dataset.ready === 'yes'")) {
      return;
    }
    await new Promise((r) => setTimeout(r, 50));
  }
}

// Loads the page; resolves when the page is ready.
export async function open(url, width, dark, media = '') {
  await send('Emulation.setDeviceMetricsOverride', {width, height: 900, deviceScaleFactor: 1, mobile: width < 600});
  await send('Emulation.setEmulatedMedia', {media,
    features: [{name: 'prefers-color-scheme', value: dark ? 'dark' : 'light'}]});
  await send('Page.navigate', {url});
  await ready();
}
