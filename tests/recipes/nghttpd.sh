# nghttpd: HTTP/2 by three threads.
programs='nghttpd h2load'
packages='nghttp2-server nghttp2-client'
licence=MIT
varies=err

run() {
  mkdir html
  text 10 >html/10.txt
  start nghttpd --no-tls -n 3 -a 127.0.0.1 -d html "$port"
  ready listening "$port"
  h2load -n "$(part 20000)" -c 6 -m 10 "http://127.0.0.1:$port/10.txt" | grep '^status'
  stop 143
}
