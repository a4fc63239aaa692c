# pdns_recursor: names of a file, by two threads.
programs=pdns_recursor
packages=pdns-recursor
licence=GPL-2.0-only
varies='*.pid err'

run() {
  perl -e 'print "10.0.0.1 h$_.example\n" for 1 .. $ARGV[0]' "$(part 20000)" >hosts
  start pdns_recursor --config-dir="$PWD" --socket-dir="$PWD" --daemon=no \
    --local-address=127.0.0.1 --local-port="$port" --threads=2 \
    --export-etc-hosts=yes --etc-hosts-file="$PWD/hosts" --dnssec=off --security-poll-suffix= \
    --disable-syslog --quiet
  ready dns_answers "$port"
  dns_load "$port" "$(part 20000)"
  stop 143
}
