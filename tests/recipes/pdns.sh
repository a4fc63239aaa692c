# pdns_server with two threads for answers and a zone in a file.
programs='pdns_server /usr/share/doc/pdns-backend-bind'
packages='pdns-server pdns-backend-bind'
licence=GPL-2.0-only
varies='*.pid err'

run() {
  dns_zone "$(part 20000)" >zone
  printf 'zone "example" { type native; file "%s/zone"; };\n' "$PWD" >named.conf
  start pdns_server --config-dir="$PWD" --socket-dir="$PWD" --daemon=no --guardian=no \
    --launch=bind --bind-config=named.conf --local-address=127.0.0.1 --local-port="$port" \
    --receiver-threads=2 --distributor-threads=2 --zone-cache-refresh-interval=0 \
    --loglevel=3 --disable-syslog
  ready dns_answers "$port"
  dns_load "$port" "$(part 20000)"
  stop 143
}
