# cppcheck: two jobs, which are processes.
programs=cppcheck
packages=cppcheck
licence=GPL-3.0-or-later
varies=err # the order of two jobs

run() {
  for i in 1 2 3; do
    code "$(part 60)" >$i.c
  done
  record cppcheck -q -j2 --enable=all .
}
