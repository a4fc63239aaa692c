# clustalo with two threads, by OpenMP.
programs=clustalo
packages=clustalo
licence=GPL-2.0-or-later

run() {
  variants ACDEFGHIKL 200 "$(part 300)" 30 >input.fa
  record clustalo --threads=2 -i input.fa -o output.fa
}
