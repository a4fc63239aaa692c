# plzip with two threads.
programs=plzip
packages=plzip
licence=GPL-2.0-or-later

run() {
  text "$(part 30000)" >input
  record plzip -n 2 -k input
}
