# lrzip with two threads.
programs=lrzip
packages=lrzip
licence=GPL-2.0-or-later
varies="input.lrz out" # a random number, times

run() {
  text "$(part 30000)" >input
  record lrzip -q -p 2 -b input
}
