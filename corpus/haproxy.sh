# haproxy with two threads: answers, and compresses them.
programs='haproxy ab curl'
packages='haproxy apache2-utils curl'
licence=GPL-2.0-or-later
varies=err

run() {
  text 10 >page.txt
  cat >haproxy.cfg <<END
global
  nbthread 2
defaults
  mode http
  timeout client 5s
  timeout server 5s
  timeout connect 5s
frontend f
  bind 127.0.0.1:$port
  http-request set-var(txn.a) path,lower
  http-request return status 200 content-type text/plain file $PWD/page.txt if { path_beg /page }
  http-request return status 404 content-type text/plain lf-string "no %[var(txn.a)]"
END
  start haproxy -db -f haproxy.cfg
  ready listening "$port"
  ab -q -n "$(part 5000)" -c 6 "http://127.0.0.1:$port/page" >/dev/null
  ab -q -k -n "$(part 5000)" -c 6 "http://127.0.0.1:$port/page" >/dev/null
  curl -s "http://127.0.0.1:$port/None"
  stop 143
}
