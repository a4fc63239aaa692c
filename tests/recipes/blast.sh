# blastn with two threads.
programs=blastn
packages=ncbi-blast+
licence=public-domain
varies='db.*'

run() {
  bases "$(part 2000000)" >ref.fa
  reads "$(part 3000)" 400 ref.fa | sed -n '1~4s/^@/>/p; 2~4p' >query.fa
  makeblastdb -in ref.fa -dbtype nucl -out db >/dev/null
  record blastn -num_threads 2 -db db -query query.fa -outfmt 6 | cksum
}
