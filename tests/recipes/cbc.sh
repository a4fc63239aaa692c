# cbc with two threads: a knapsack.
programs=cbc
packages=coinor-cbc
licence=EPL-2.0
varies='out solution' # times

run() {
  perl -e 'srand 6;
    sub sum {
      my ($least, $range) = @_;
      join " + ", map { int(rand $range) + $least . " x$_" } 1 .. 26;
    }
    print "Maximize\n obj: ", sum(10, 90), "\nSubject To\n";
    print " c$_: ", sum(5, 60), " <= 500\n" for 1 .. 12;
    print "Binary\n ", join(" ", map { "x$_" } 1 .. 26), "\nEnd\n"' >input.lp
  record cbc input.lp threads 2 sec 8 solve solu solution
}
