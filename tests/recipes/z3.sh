# z3: its parallel tactic on a bit-vector puzzle.
programs=z3
packages=z3
licence=MIT
varies=out # which thread wins

run() {
  {
    echo '(set-option :parallel.enable true)(set-option :parallel.threads.max 2)(set-logic QF_BV)'
    i=0
    while [ $i -lt 6 ]; do
      echo "(declare-const x$i (_ BitVec 14))"
      [ $i = 0 ] || echo "(assert (= (bvmul x$i x$((i - 1))) (_ bv$((i * 137 + 12)) 14))) (assert (distinct x$i x$((i - 1))))"
      i=$((i + 1))
    done
    echo '(check-sat)'
  } >input.smt2
  record z3 input.smt2
}
