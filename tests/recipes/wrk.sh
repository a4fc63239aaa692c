# wrk: two threads load nginx, which is not recorded.
programs='wrk nginx'
packages='wrk nginx-light'
licence=Apache-2.0
varies='* out err'

run() {
  echo "daemon off; pid nginx.pid; error_log stderr; events {} http { access_log off; client_body_temp_path b; proxy_temp_path p;
    fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; server { listen 127.0.0.1:$port; location / { return 200 page; } } }" >nginx.conf
  nginx -p "$PWD/" -c nginx.conf -e error.log &
  nginx=$!
  ready listening "$port"
  record wrk -t 2 -c 10 -d 2 "http://127.0.0.1:$port/"
  kill $nginx
}
