# knotd: workers for UDP, TCP and the background.
programs=knotd
packages=knot
licence=GPL-3.0-or-later
varies='out data/*'

run() {
  mkdir data
  dns_zone "$(part 20000)" >zone
  cat >knot.conf <<END
server:
  rundir: $PWD
  listen: 127.0.0.1@$port
  udp-workers: 2
  tcp-workers: 2
  background-workers: 2
database:
  storage: $PWD/data
zone:
  - domain: example
    file: $PWD/zone
    zonefile-sync: -1
log:
  - target: stderr
    any: error
END
  start knotd -c knot.conf
  ready dns_answers "$port"
  dns_load "$port" "$(part 20000)" >answers.txt
  stop
}
