# cryptominisat5 with two threads: a random formula that can be satisfied.
programs=cryptominisat5
packages=cryptominisat
licence=MIT
varies=out # which thread wins

run() {
  perl -e 'srand 5; my ($v, $n) = (150, 600); print "p cnf $v $n\n"; print join(" ", map { (1 + int rand $v) * (rand() < 0.5 ? 1 : -1) } 1 .. 3), " 0\n" for 1 .. $n' >input.cnf
  record cryptominisat5 --verb 0 -t 2 input.cnf || [ $? -eq 10 ] || [ $? -eq 20 ]
}
