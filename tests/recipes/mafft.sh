# mafft: aligns with two threads, by many programs.
programs=mafft
packages=mafft
licence=BSD-3-Clause
varies=err

run() {
  perl -e 'srand 8; my $s = join "", map { substr "ACGT", rand 4, 1 } 1 .. 600; for my $i (1 .. shift) { my $t = $s;
    substr($t, rand length $t, 1) = substr "ACGT", rand 4, 1 for 1 .. 90; substr($t, rand length $t, 9) = "" for 1 .. 3; print ">s$i\n$t\n" }' "$(part 300)" >input.fa
  record mafft --quiet --thread 2 --retree 2 input.fa
}
