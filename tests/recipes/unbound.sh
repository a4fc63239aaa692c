# unbound with two threads: local data.
programs=unbound
packages=unbound
licence=BSD-3-Clause
varies=err

run() {
  {
    printf 'server:\n  interface: 127.0.0.1@%d\n  num-threads: 2\n  do-daemonize: no\n  chroot: ""\n  username: ""\n  directory: "%s"\n' "$port" "$PWD"
    printf '  pidfile: ""\n  use-syslog: no\n  module-config: "iterator"\n  local-zone: "example." static\n'
    perl -e 'print "  local-data: \"h$_.example. A 10.0.0.1\"\n" for 1 .. $ARGV[0]' "$(part 20000)"
    printf 'remote-control:\n  control-enable: no\n'
  } >unbound.conf
  start unbound -d -c unbound.conf
  ready dns_answers "$port"
  dns_load "$port" "$(part 20000)"
  stop
}
