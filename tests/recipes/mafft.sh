# mafft: aligns with two threads, by many programs.
programs=mafft
packages=mafft
licence=BSD-3-Clause
varies=err

run() {
  variants ACGT 600 "$(part 300)" 90 >input.fa
  record mafft --quiet --thread 2 --retree 2 input.fa
}
