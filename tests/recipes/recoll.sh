# recollindex: its stages of an index are threads.
programs=recollindex
packages=recollcmd
licence=GPL-2.0-or-later
varies='conf/* out err'

run() {
  mkdir docs conf
  text "$(part 3000)" | split -b 20000 --additional-suffix=.txt - docs/
  printf 'topdirs = %s\nthrQSizes = 2 2 2\nthrTCounts = 2 2 1\nlogfilename = stderr\nloglevel = 2\n' "$PWD/docs" >conf/recoll.conf
  record recollindex -c "$PWD/conf"
}
