# varnishd: compiles its configuration, and its child serves from a cache by many threads.
programs='varnishd ab curl gcc'
packages='varnish apache2-utils curl gcc libc6-dev'
licence=BSD-2-Clause
varies='v/* out err'

run() {
  cat >v.vcl <<END
vcl 4.1;
backend default none;
sub vcl_recv { return (synth(200, "page")); }
sub vcl_synth { synthetic("you asked for " + req.url); return (deliver); }
END
  start varnishd -F -n "$PWD/v" -a "127.0.0.1:$port" -f "$PWD/v.vcl" -s malloc,16m -j none
  ready listening "$port"
  ab -q -n "$(part 5000)" -c 6 "http://127.0.0.1:$port/page" >/dev/null
  ab -q -k -n "$(part 5000)" -c 6 "http://127.0.0.1:$port/page" >/dev/null
  curl -s "http://127.0.0.1:$port/some/page" >page.txt
  stop
}
