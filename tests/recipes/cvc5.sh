# cvc5: linear arithmetic with quantifiers.
programs=cvc5
packages=cvc5
licence=BSD-3-Clause

run() {
  {
    echo '(set-logic UFLIA)(declare-fun f (Int) Int)'
    echo '(assert (forall ((x Int)) (> (f (+ x 1)) (f x))))'
    i=0
    while [ $i -lt "$(part 200)" ]; do
      echo "(assert (< (f $i) $((i * 3 + 40))))"
      i=$((i + 1))
    done
    echo "(assert (> (f 0) 5000))(check-sat)"
  } >input.smt2
  record cvc5 --tlimit=20000 input.smt2
}
