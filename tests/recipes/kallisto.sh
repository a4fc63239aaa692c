# kallisto quant with two threads.
programs=kallisto
packages=kallisto
licence=BSD-2-Clause
varies='index out/* err'

run() {
  bases "$(part 500000)" >all.fa
  pieces 900 all.fa >ref.fa
  reads "$(part 200000)" 75 all.fa >reads.fq
  kallisto index -i index ref.fa 2>/dev/null
  record kallisto quant -i index -o out --single -l 200 -s 20 -t 2 -b 3 --plaintext reads.fq
  cut -f 1-3 out/abundance.tsv | cksum
}
