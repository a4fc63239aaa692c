# kallisto quant with two threads.
programs=kallisto
packages=kallisto
licence=BSD-2-Clause
varies='index out/* err'

run() {
  bases "$(part 500000)" >all.fa
  perl -e 'open F, shift; <F>; chomp(my $s = join "", <F>); $s =~ tr/\n//d; print ">t$_\n", substr($s, $_ * 500, 900), "\n" for 0 .. length($s) / 500 - 2' all.fa >ref.fa
  reads "$(part 200000)" 75 all.fa >reads.fq
  kallisto index -i index ref.fa 2>/dev/null
  record kallisto quant -i index -o out --single -l 200 -s 20 -t 2 -b 3 --plaintext reads.fq
  cut -f 1-3 out/abundance.tsv | cksum
}
