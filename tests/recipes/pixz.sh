# pixz with two threads.
programs=pixz
packages=pixz
licence=BSD-2-Clause

run() {
  text "$(part 30000)" >input
  record pixz -p 2 -3 input output.xz
}
