# cryptominisat5 with two threads: a satisfiable random formula.
programs=cryptominisat5
packages=cryptominisat
licence=MIT
varies=out # which thread wins

run() {
  perl -e 'srand 5;
    print "p cnf 150 600\n";
    for (1 .. 600) {
      print join(" ", map { (1 + int rand 150) * (rand() < 0.5 ? 1 : -1) } 1 .. 3), " 0\n";
    }' >input.cnf
  record cryptominisat5 --verb 0 -t 2 input.cnf || [ $? -eq 10 ] || [ $? -eq 20 ]
}
