# sort with four threads.
programs=sort
packages=coreutils
licence=GPL-3.0-or-later

run() {
  text "$(part 60000)" | tr ' ' '\n' >input
  record sort --parallel=4 -S 64M -o output input
}
