# salmon: an index with two threads.
programs=salmon
packages=salmon
licence=GPL-3.0-or-later
varies='* out err' # times

run() {
  bases "$(part 500000)" >all.fa
  perl -e 'open F, shift; <F>; chomp(my $s = join "", <F>); $s =~ tr/\n//d; print ">t$_\n", substr($s, $_ * 500, 900), "\n" for 0 .. length($s) / 500 - 2' all.fa >ref.fa
  record salmon --no-version-check index -t ref.fa -i index -k 21 -p 2
}
