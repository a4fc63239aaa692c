# node: two workers, each with its own heap.
programs=node
packages=nodejs
licence=MIT

run() {
  cat >main.js <<END
const { Worker, isMainThread, parentPort } = require("worker_threads");
const zlib = require("zlib");
if (isMainThread) {
  let left = 2, all = [];
  for (let i = 0; i < 2; i++) new Worker(__filename).on("message", (m) => { all.push(m); if (!--left) console.log(all.join(" ")); });
} else {
  const o = {};
  for (let i = 0; i < $(part 100000); i++) o["k" + i % 999] = Buffer.from("x".repeat(i % 500)).toString("base64");
  parentPort.postMessage(zlib.deflateSync(JSON.stringify(o)).length);
}
END
  record node main.js
}
