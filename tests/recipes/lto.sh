# gcc -flto=2: the compiler, the link plug-in and make with two jobs.
programs='gcc make'
packages='gcc libc6-dev make'
licence=GPL-3.0-or-later

run() {
  for i in 1 2 3; do
    code "$(part 500)" | sed "s/\bf\([0-9]*\)(/f${i}_\1(/g; s/main/main$i/" >$i.c
  done
  echo 'int main1(void), main2(void), main3(void);
    int main(void) { return main1() + main2() + main3(); }' >main.c
  gcc -O1 -flto -frandom-seed=1 -c 1.c 2.c 3.c main.c
  record gcc -O2 -flto=2 -frandom-seed=1 -o output 1.o 2.o 3.o main.o
}
