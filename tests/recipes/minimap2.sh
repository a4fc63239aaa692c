# minimap2 with three threads.
programs=minimap2
packages=minimap2
licence=MIT
varies=err # times

run() {
  bases "$(part 3000000)" >ref.fa
  reads "$(part 50000)" 1000 ref.fa >reads.fq
  record minimap2 -t 3 -a -x map-ont ref.fa reads.fq | grep -v '^@PG' | cksum
}
