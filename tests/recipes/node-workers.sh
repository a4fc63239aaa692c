# node: two workers, each with its own heap.
programs=node
packages=nodejs
licence=MIT

run() {
  cat >main.js <<'END'
const { Worker, isMainThread, parentPort } = require("worker_threads");
const zlib = require("zlib");
if (isMainThread) {
  const all = [];
  const done = (length) => all.push(length) == 2 && console.log(all.join(" "));
  for (let i = 0; i < 2; i++)
    new Worker(__filename, { argv: process.argv.slice(2) }).on("message", done);
} else {
  const o = {};
  for (let i = 0; i < process.argv[2]; i++)
    o["k" + i % 999] = Buffer.from("x".repeat(i % 500)).toString("base64");
  parentPort.postMessage(zlib.deflateSync(JSON.stringify(o)).length);
}
END
  record node main.js "$(part 100000)"
}
