# iqtree2 with two threads: a tree of random sequences.
programs=iqtree2
packages=iqtree
licence=GPL-2.0-or-later
varies='* out err' # times

run() {
  perl -e 'srand 8;
    my $s = join "", map { substr "ACGT", rand 4, 1 } 1 .. shift;
    for my $i (1 .. 8) {
      substr($s, rand length $s, 1) = substr "ACGT", rand 4, 1 for 1 .. 20;
      print ">s$i\n$s\n";
    }' "$(part 6000)" >input.fa
  record iqtree2 -s input.fa -m HKY+G -T 2 -seed 1 -quiet
}
