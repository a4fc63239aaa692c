# bwa mem with two threads.
programs=bwa
packages=bwa
licence=GPL-3.0-or-later
varies=err # times

run() {
  bases "$(part 2000000)" >ref.fa
  reads "$(part 100000)" 90 ref.fa >reads.fq
  bwa index ref.fa 2>/dev/null
  record bwa mem -t 2 ref.fa reads.fq | grep -v '^@PG' | cksum
}
