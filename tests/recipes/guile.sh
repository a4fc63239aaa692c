# guile: futures, and the threads of its collector.
programs=guile
packages=guile-3.0
licence=LGPL-3.0-or-later

run() {
  record guile --no-auto-compile -c "(use-modules (ice-9 threads))
    (define (work n) (length (vector->list (make-vector (* 10 n) (number->string n)))))
    (display (apply + (par-map work (iota $(part 5000)))))"
}
