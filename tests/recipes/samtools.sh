# samtools: sorts with two more threads.
programs='samtools minimap2'
packages='samtools minimap2'
licence=MIT

run() {
  bases "$(part 1000000)" >ref.fa
  reads "$(part 200000)" 90 ref.fa >reads.fq
  minimap2 -t 2 -a -x sr ref.fa reads.fq >input.sam 2>/dev/null
  record samtools sort -@ 2 -m 2M -o output.bam input.sam
}
varies=err
