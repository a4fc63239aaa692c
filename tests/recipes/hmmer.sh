# hmmsearch with two workers.
programs='hmmsearch hmmbuild'
packages=hmmer
licence=BSD-3-Clause
varies='log.txt model'

run() {
  printf '>a\nMKVLAAGIVGLCAKRWNE\n>b\nMKVLSAGIVGICAKRWQE\n>c\nMRVLAAGLVGLCGKRWNE\n' >align.fa
  hmmbuild --amino model align.fa >/dev/null
  perl -e 'srand 7;
    for my $i (1 .. shift) {
      my $s = join "", map { substr "ACDEFGHIKLMNPQRSTVWY", rand 20, 1 } 1 .. 300;
      print ">s$i\n$s", $i % 9 ? "" : "MKVLAAGIVGLCAKRWNE", "\n";
    }' "$(part 30000)" >sequences.fa
  record hmmsearch --cpu 2 --tblout hits.txt model sequences.fa >log.txt
  grep -v '^#' hits.txt | cksum
  rm hits.txt
}
