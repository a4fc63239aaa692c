# pbzip2 with four threads.
programs=pbzip2
packages=pbzip2
licence=bzip2-1.0.6

run() {
  text "$(part 40000)" >input
  record pbzip2 -p4 -k input
}
