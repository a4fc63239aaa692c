# emacs in batch mode: compiles Lisp.
programs=emacs
packages=emacs-nox
licence=GPL-3.0-or-later
varies='*.elc'

run() {
  perl -e 'print ";;; -*- lexical-binding: t -*-\n";
    print "(defun f$_ (a b) (let ((c (* a $_))) (dolist (x b) (when (> x c) (setq c (+ x c))))",
      " (lambda (y) (list y c))))\n" for 1 .. shift' "$(part 2000)" >input.el
  record emacs -Q --batch -f batch-byte-compile input.el
}
