# ld.lld links a program of many sections.
programs='ld.lld-14 gcc'
packages='lld-14 gcc libc6-dev'
licence=Apache-2.0

run() {
  code "$(part 3000)" >input.c
  gcc -fPIC -ffunction-sections -g -c input.c
  record ld.lld-14 --threads=2 -shared -O2 -o output.so input.o
}
