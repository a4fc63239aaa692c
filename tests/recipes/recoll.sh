# recollindex: the stages of its index are threads.
programs='recollindex split'
packages=recollcmd
licence=GPL-2.0-or-later
varies='conf/* out err'

run() {
  mkdir docs conf
  text "$(part 3000)" | split -b 20000 --additional-suffix=.txt - docs/
  cat >conf/recoll.conf <<END
topdirs = $PWD/docs
thrQSizes = 2 2 2
thrTCounts = 2 2 1
logfilename = stderr
loglevel = 2
END
  record recollindex -c "$PWD/conf"
}
