# lbzip2 with two threads, decompressing.
programs=lbzip2
packages=lbzip2
licence=GPL-3.0-or-later

run() {
  text "$(part 40000)" >input
  lbzip2 -n 2 input
  record lbzip2 -n 2 -d -k input.bz2
}
