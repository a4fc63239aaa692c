# ngspice: a chain of RC and diodes, transient.
programs=ngspice
packages=ngspice
licence=BSD-3-Clause
varies='out err'

run() {
  perl -e 'print "chain\nV1 n0 0 sin(0 5 1k)\n.model d1 d(is=1e-14)\n"; my $n = shift; for (1 .. $n) { my $p = $_ - 1; print "R$_ n$p n$_ 100\nC$_ n$_ 0 10n\nD$_ n$_ 0 d1\n" }
    print ".tran 10u 3m\n.print tran v(n$n)\n.end\n"' "$(part 600)" >input.cir
  record ngspice -b input.cir
}
