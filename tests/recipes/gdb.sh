# gdb: reads symbols by its worker threads.
programs='gdb gcc'
packages='gdb gcc libc6-dev'
licence=GPL-3.0-or-later
varies=err

run() {
  code "$(part 1500)" >input.c
  gcc -g -o input input.c
  record gdb -nx -batch -ex 'maint set worker-threads 3' -ex 'info functions f1' \
    -ex 'info types .' -ex 'disassemble main' input
}
