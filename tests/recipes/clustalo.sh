# clustalo with two threads, by OpenMP.
programs=clustalo
packages=clustalo
licence=GPL-2.0-or-later

run() {
  perl -e 'srand 8; my $s = join "", map { substr "ACDEFGHIKL", rand 10, 1 } 1 .. 200; for my $i (1 .. shift) { my $t = $s;
    substr($t, rand length $t, 1) = substr "ACDEFGHIKL", rand 10, 1 for 1 .. 30; substr($t, rand length $t, 5) = "" for 1 .. 3; print ">s$i\n$t\n" }' "$(part 300)" >input.fa
  record clustalo --threads=2 -i input.fa -o output.fa
}
