# siege: a thread for each of its users; nginx is not recorded.
programs='siege nginx'
packages='siege nginx-light'
licence=GPL-3.0-or-later
varies='* out err'

run() {
  echo "daemon off; pid nginx.pid; error_log stderr; events {} http { access_log off; client_body_temp_path b; proxy_temp_path p;
    fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; server { listen 127.0.0.1:$port; location / { return 200 page; } } }" >nginx.conf
  nginx -p "$PWD/" -c nginx.conf -e error.log &
  nginx=$!
  ready listening "$port"
  record siege -q -b -c 6 -r "$(part 300)" "http://127.0.0.1:$port/"
  kill $nginx
}
