# named with two threads: one zone.
programs=named
packages=bind9
licence=MPL-2.0
varies='err session.key managed-keys* *.jnl'

run() {
  dns_zone "$(part 20000)" >zone
  cat >named.conf <<END
options {
  directory "$PWD";
  listen-on port $port { 127.0.0.1; };
  listen-on-v6 { none; };
  recursion no;
  pid-file none;
  session-keyfile none;
  dnssec-validation no;
};
controls { };
zone "example" { type primary; file "zone"; };
END
  start named -f -n 2 -c named.conf
  ready dns_answers "$port"
  dns_load "$port" "$(part 20000)"
  stop
}
