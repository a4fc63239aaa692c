# make with two jobs of gcc.
programs='make gcc'
packages='make gcc libc6-dev'
licence=GPL-3.0-or-later

run() {
  for i in 1 2 3 4; do
    code "$(part 200)" | sed "s/main/main$i/; s/\bf\([0-9]*\)(/f${i}_\1(/g" >$i.c
  done
  printf 'all.a: 1.o 2.o 3.o 4.o\n\tar rD $@ $^\n' >Makefile
  record make -s -j2 2>&1
}
