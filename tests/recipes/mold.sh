# mold links a program of many sections.
programs='mold gcc'
packages='mold gcc libc6-dev'
licence=AGPL-3.0-or-later
# mimalloc is in the executable.
says='calls its own malloc|was not seen|% was not recorded'

run() {
  code "$(part 3000)" >input.c
  gcc -ffunction-sections -g -c input.c
  record mold --thread-count=2 -shared -o output.so input.o
}
