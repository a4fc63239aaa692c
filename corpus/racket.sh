# racket: two places, each with its own heap.
programs=racket
packages=racket
licence=Apache-2.0

run() {
  cat >main.rkt <<END
#lang racket/base
(require racket/place racket/list)
(provide work main)
(define (digits n) (string-length (number->string n)))
(define (work channel)
  (place-channel-put channel (apply + (map digits (range $(part 500000))))))
(define (main)
  (define places (for/list ((i 2)) (dynamic-place "main.rkt" 'work)))
  (displayln (map place-channel-get places))
  (for-each place-wait places))
END
  record racket -l racket/base -e '((dynamic-require "main.rkt" (quote main)))'
}
