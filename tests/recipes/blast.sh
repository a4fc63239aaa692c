# blastn with two threads.
programs=blastn
packages=ncbi-blast+
licence=public-domain

run() {
  bases "$(part 2000000)" >ref.fa
  reads "$(part 3000)" 400 ref.fa | perl -ne 'print $. % 4 == 1 ? ">" . substr($_, 1) : $. % 4 == 2 ? $_ : ""' >query.fa
  makeblastdb -in ref.fa -dbtype nucl -out db >/dev/null
  record blastn -num_threads 2 -db db -query query.fa -outfmt 6 | cksum
}
varies='db.*'
