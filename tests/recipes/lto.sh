# gcc -flto=2: the compiler, the link plug-in and make with two jobs.
programs=gcc
packages='gcc libc6-dev make'
licence=GPL-3.0-or-later

run() {
  for i in 1 2 3; do
    code "$(part 500)" | sed "s/\bf\([0-9]*\)(/f${i}_\1(/g; s/main/main$i/" >$i.c
  done
  echo 'int main1(void); int main2(void); int main3(void); int main(void) { return main1() + main2() + main3(); }' >main.c
  gcc -O1 -flto -c 1.c 2.c 3.c main.c
  record gcc -O2 -flto=2 -o output 1.o 2.o 3.o main.o
}
