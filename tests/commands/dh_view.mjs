// Runs Valgrind's dh_view.js without a page: builds its tree of the file and prints it.
import fs from 'node:fs';
import vm from 'node:vm';
const [viewer, file] = process.argv.slice(2);
const any = () => new Proxy(function () {}, {get: (t, k) => (k === 'entries' ? () => [] : k === 'length' ? 0 : k === Symbol.iterator ? [][Symbol.iterator] : k === Symbol.toPrimitive ? () => '' : any()), set: () => true, apply: any, construct: any});
const context = vm.createContext({document: any(), window: any(), console, Intl, Error, performance, JSON});
vm.runInContext(fs.readFileSync(viewer, 'utf8'), context);
context.text = fs.readFileSync(file, 'utf8');
console.log(vm.runInContext(`gData = JSON.parse(text); gSelect = {childNodes: [{}], selectedIndex: 0}; gSelect.childNodes.entries = () => []; buildTree();
  const show = (t, depth) => ' '.repeat(depth) + [t._totalBytes, t._totalBlocks, t._totalLifetimes, t._atTGmaxBytes, t._atTEndBytes].join(' ') + ' ' + t._frames.map((f) => gData.ftbl[f]).join(' < ') + '\\n' + (t._kids || []).map((k) => show(k, depth + 1)).join('');
  show(gRoot, 0)`, context));
