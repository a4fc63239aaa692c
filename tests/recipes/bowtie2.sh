# bowtie2-align-s with two threads.
programs='bowtie2-align-s bowtie2-build'
packages=bowtie2
licence=GPL-3.0-or-later
varies=err

run() {
  bases "$(part 1000000)" >ref.fa
  reads "$(part 100000)" 90 ref.fa >reads.fq
  bowtie2-build -q ref.fa ref 2>/dev/null
  record bowtie2-align-s --wrapper basic-0 -p 2 --reorder -x ref -U reads.fq |
    grep -v '^@PG' | cksum
}
