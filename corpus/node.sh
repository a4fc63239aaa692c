# Node.js: buffers, compression and hashes in its thread pool, JSON.
programs=nodejs
packages=nodejs
licence=MIT
varies=out # the order of callbacks

run() {
  cat >input.js <<'END'
const zlib = require('zlib'), crypto = require('crypto'), fs = require('fs');
const n = Number(process.argv[2]);
let seed = 1, left = n, sum = 0;
const next = () => (seed = (seed * 1103515245 + 12345) % 2147483648);
function one(done) {
  const rows = Array.from({ length: 200 }, (_, i) => ({ id: i, name: 'n' + next(), tags: [next() % 7, next() % 31] }));
  const text = Buffer.from(JSON.stringify(rows));
  fs.writeFile('file' + left, text, () => zlib.gzip(text, (e, packed) => zlib.gunzip(packed, (f, same) => {
    crypto.pbkdf2(same.subarray(0, 64), 'salt', 10, 64, 'sha512', (g, key) => done(key[0]));
  })));
}
function go(byte) {
  sum += byte;
  if (left-- > 0) one(go); else console.log(sum);
}
for (let i = 0; i < 8; i++) go(0);
END
  record nodejs --max-old-space-size=256 input.js $((3000 * size / 100 + 10))
}
