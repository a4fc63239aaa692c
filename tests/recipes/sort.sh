# sort with four threads and a small buffer.
programs=sort
packages=coreutils
licence=GPL-3.0-or-later

run() {
  text "$(part 60000)" | tr ' ' '\n' >input
  record sort --parallel=4 -S 8M -o output input
}
