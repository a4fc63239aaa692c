# nginx under ab: files, some of them compressed.
programs='nginx ab awk'
packages='nginx apache2-utils'
licence=BSD-2-Clause
varies='logs/* *.log *.pid out err'

run() {
  mkdir -p html logs
  for kib in 1 10 100; do
    awk -v n=$kib 'BEGIN { for (i = 0; i < n * 32; i++) printf "%031d\n", i * 2654435761 % 4294967296 }' >html/$kib.txt
  done
  cat >nginx.conf <<END
daemon off; master_process off; pid nginx.pid; error_log error.log; user root;
events { worker_connections 256; }
http {
  access_log access.log; gzip on; gzip_types text/plain; default_type text/plain;
  client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server { listen 127.0.0.1:${CORPUS_PORT:-18473}; root html; }
}
END
  start nginx -p "$PWD/" -c nginx.conf -e error.log
  ready test -s nginx.pid
  for file in 1 10 100; do
    ab -q -n $((10000 * size / file / 100 + 10)) -c 8 "http://127.0.0.1:${CORPUS_PORT:-18473}/$file.txt"
    ab -q -n $((10000 * size / file / 100 + 10)) -c 8 -k -H 'Accept-Encoding: gzip' "http://127.0.0.1:${CORPUS_PORT:-18473}/$file.txt"
  done
  kill -QUIT "$(cat nginx.pid)"
  wait "$server"
}
