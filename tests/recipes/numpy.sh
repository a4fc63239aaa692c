# python3 with numpy: products of matrices and FFTs, with the threads of a BLAS.
programs='python3 /usr/share/doc/python3-numpy'
packages='python3-numpy python3'
licence=BSD-3-Clause

run() {
  OPENBLAS_NUM_THREADS=2 record python3 -c "
import numpy as np, threading
a = np.arange(250000, dtype=float).reshape(500, 500) % 97
out = {}
def work(n): out[n] = (round((a @ a.T)[n, n]), int(np.sort(a.ravel() * n % 13).sum()), round(abs(np.fft.fft(a[n])[0])))
t = [threading.Thread(target=work, args=(n,)) for n in range(3)]
[x.start() for x in t]; [x.join() for x in t]
print(sorted(out.items()))
"
}
