# salmon: an index with two threads.
programs=salmon
packages=salmon
licence=GPL-3.0-or-later
varies='* out err' # times

run() {
  bases "$(part 500000)" >all.fa
  pieces 900 all.fa >ref.fa
  record salmon --no-version-check index -t ref.fa -i index -k 21 -p 2
}
