# python3: a pool of threads hashes, compresses and sorts.
programs=python3
packages=python3
licence=PSF-2.0

run() {
  record python3 -I -c "
import concurrent.futures, hashlib, zlib, json, sqlite3
def work(n):
    text = json.dumps({str(i): [i * n, 'x' * (i % 30)] for i in range(500)})
    return len(zlib.compress(text.encode())), hashlib.sha256(text.encode()).hexdigest()[:6]
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(work, range($(part 1000))))[-3:])
"
}
