# python3 with numpy: products of matrices and FFTs in three threads, with a BLAS of two.
programs='python3 /usr/share/doc/python3-numpy'
packages='python3-numpy python3'
licence=BSD-3-Clause

run() {
  OPENBLAS_NUM_THREADS=2 record python3 -c "
import numpy as np, threading
a = np.arange(250000, dtype=float).reshape(500, 500) % 97
out = {}
def work(n):
    product, spectrum = a @ a.T, np.fft.fft(a[n])
    out[n] = round(product[n, n]), int(np.sort(a.ravel() * n % 13).sum()), round(abs(spectrum[0]))
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sorted(out.items()))
"
}
