# z3: its parallel tactic on a puzzle of bit vectors.
programs=z3
packages=z3
licence=MIT
varies=out # which thread wins

run() {
  perl -e 'print "(set-option :parallel.enable true)(set-option :parallel.threads.max 2)\n";
    print "(set-logic QF_BV)\n";
    print "(declare-const x$_ (_ BitVec 14))\n" for 0 .. 5;
    for my $i (1 .. 5) {
      my ($a, $b) = ("x$i", "x" . ($i - 1));
      print "(assert (= (bvmul $a $b) (_ bv", $i * 137 + 12, " 14)))(assert (distinct $a $b))\n";
    }
    print "(check-sat)\n"' >input.smt2
  record z3 input.smt2
}
