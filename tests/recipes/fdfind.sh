# fdfind: walks a tree by four threads.
programs=fdfind
packages=fd-find
licence='MIT OR Apache-2.0'

run() {
  perl -e 'for my $i (1 .. shift) {
      my $folder = "d" . $i % 13;
      mkdir $folder;
      open my $f, ">", "$folder/f$i";
    }' "$(part 20000)"
  record fdfind -j4 -t f '7$' . >unsorted
  sort unsorted | cksum
  rm unsorted
}
