# wrk: two threads load nginx, which is not recorded.
programs='wrk nginx'
packages='wrk nginx-light'
licence=Apache-2.0
varies='* out err'

run() {
  page_server
  record wrk -t 2 -c 10 -d 2 "http://127.0.0.1:$port/"
  kill "$nginx"
}
