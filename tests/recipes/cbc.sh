# cbc with two threads: a knapsack.
programs=cbc
packages=coinor-cbc
licence=EPL-2.0
varies='out solution' # times

run() {
  perl -e 'srand 6; my $n = 26; print "Maximize\n obj: ", join(" + ", map { int(rand 90 + 10) . " x$_" } 1 .. $n), "\nSubject To\n";
    for my $c (1 .. 12) { print " c$c: ", join(" + ", map { int(rand 60 + 5) . " x$_" } 1 .. $n), " <= 500\n" }
    print "Binary\n ", join(" ", map { "x$_" } 1 .. $n), "\nEnd\n"' >input.lp
  record cbc input.lp threads 2 sec 8 solve solu solution
}
