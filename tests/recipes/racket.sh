# racket: two places, each with its own heap.
programs=racket
packages=racket
licence=Apache-2.0

run() {
  cat >main.rkt <<END
#lang racket/base
(require racket/place racket/list)
(provide work main)
(define (work ch) (place-channel-put ch (apply + (map (lambda (n) (string-length (number->string n))) (range $(part 500000))))))
(define (main) (define ps (for/list ((i 2)) (dynamic-place "main.rkt" 'work)))
  (displayln (map place-channel-get ps)) (for-each place-wait ps))
END
  record racket -l racket/base -e '((dynamic-require "main.rkt" (quote main)))'
}
