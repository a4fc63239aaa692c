# clamd with three threads: scans files for custom signatures.
programs='clamd clamdscan'
packages='clamav-daemon clamdscan'
licence=GPL-2.0-only
varies='out err'

run() {
  mkdir db files
  perl -e 'print "Test.$_:0:*:", unpack("H*", "pattern number $_"), "\n" for 1 .. 2000' >db/test.ndb
  text "$(part 20000)" | split -b 20000 - files/
  echo 'this is pattern number 77' >files/bad
  cat >clamd.conf <<END
LocalSocket $PWD/socket
DatabaseDirectory $PWD/db
Foreground yes
MaxThreads 3
User root
END
  start clamd -c "$PWD/clamd.conf"
  ready test -S socket
  clamdscan -c clamd.conf -m --no-summary -i "$PWD/files" >found.txt || [ $? -eq 1 ]
  grep -c Test found.txt
  stop
}
