# unbound with two threads: local data.
programs=unbound
packages=unbound
licence=BSD-3-Clause
varies=err

run() {
  cat >unbound.conf <<END
server:
  interface: 127.0.0.1@$port
  num-threads: 2
  do-daemonize: no
  chroot: ""
  username: ""
  directory: "$PWD"
  pidfile: ""
  use-syslog: no
  module-config: "iterator"
  local-zone: "example." static
$(perl -e 'print "  local-data: \"h$_.example. A 10.0.0.1\"\n" for 1 .. shift' "$(part 20000)")
remote-control:
  control-enable: no
END
  start unbound -d -c unbound.conf
  ready dns_answers "$port"
  dns_load "$port" "$(part 20000)"
  stop
}
