# guile: futures and its collector's threads.
programs=guile
packages=guile-3.0
licence=LGPL-3.0-or-later

run() {
  record guile --no-auto-compile -c "(use-modules (ice-9 threads))
    (display (apply + (par-map (lambda (n) (length (vector->list (make-vector (* 10 n) (number->string n))))) (iota $(part 5000)))))"
}
