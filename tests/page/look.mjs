// look.mjs CHROMIUM PAGE.html... [--width N] [--dark] [--print] [--run SCRIPT] [--twice]
//     [--shot OUT.png --top Y --height N] [--pdf OUT.pdf]
// Opens pages in headless Chromium over its debugging pipe and prints a line of JSON for each page:
// messages of the browser, requests, painted charts, and tables (name, caption, and the texts of the
// cells of each row by column). --run first runs a script in the page, --twice repeats it with a dark
// page of 360 pixels, --shot takes a picture, --pdf prints on A4. Needs only Node.
import {writeFileSync} from 'node:fs';
import {resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {complaints, evaluate, finish, launch, open, requests, send} from './browser.mjs';

const [chromium, ...rest] = process.argv.slice(2);
const first = rest.findIndex((word) => word.startsWith('--'));
const pages = rest.splice(0, first < 0 ? rest.length : first);
const options = {};
for (let i = 0; i < rest.length; i++) {
  options[rest[i].slice(2)] = rest[i + 1] === undefined || rest[i + 1].startsWith('--') ? true : rest[++i];
}

// Runs in the page: returns the painted pixels of each chart, and the tables.
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
    addresses: [...document.querySelectorAll('#addresses > p')].map(text),
    coverage: [...document.querySelectorAll('[data-coverage]')].map(text),
    series: [...document.querySelectorAll('.lines')].map((l) => [...l.closest('figure').querySelectorAll('.legend button')].map(text)),
    how: [...document.querySelectorAll('p.how')].map(text),
    findings: [...document.querySelectorAll('#findings .findings li')].map(text),
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

async function look(page) {
  complaints.length = requests.length = 0;
  const url = pathToFileURL(resolve(page)).href;
  await open(url, Number(options.width || 1280), options.dark, options.print ? 'print' : '');
  if (options.run) {
    await evaluate(options.run);
  }
  const seen = await evaluate(LOOK);
  if (options.shot) {
    await shoot(options.shot);
  }
  if (options.pdf) {
    const {data} = await send('Page.printToPDF', {paperWidth: 8.27, paperHeight: 11.69});
    writeFileSync(options.pdf, Buffer.from(data, 'base64'));
  }
  if (options.twice) {
    await open(url, 360, true);
    seen.narrow = await evaluate(LOOK);
  }
  return JSON.stringify({...seen, complaints, requests: requests.filter((r) => r !== url)});
}

async function main() {
  const looks = [];
  await launch(chromium);
  for (const page of pages) {
    looks.push(await look(page));
  }
  finish(0, looks.join('\n'));
}

main().catch((e) => finish(2, e.stack));
