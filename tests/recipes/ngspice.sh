# ngspice: a chain of resistors, capacitors and diodes, transient.
programs=ngspice
packages=ngspice
licence=BSD-3-Clause
varies='out err'

run() {
  perl -e 'my $n = shift;
    print "chain\nV1 n0 0 sin(0 5 1k)\n.model d1 d(is=1e-14)\n";
    print "R$_ n", $_ - 1, " n$_ 100\nC$_ n$_ 0 10n\nD$_ n$_ 0 d1\n" for 1 .. $n;
    print ".tran 10u 3m\n.print tran v(n$n)\n.end\n"' "$(part 600)" >input.cir
  record ngspice -b input.cir
}
