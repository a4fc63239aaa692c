# apache2 with the event module: one process of 25 threads that serves files.
programs='apache2 ab curl'
packages='apache2 apache2-utils curl'
licence=Apache-2.0
varies='log err *.pid'

run() {
  mkdir html
  text 10 >html/10.txt
  cat >apache.conf <<END
ServerRoot $PWD
ServerName 127.0.0.1
Listen 127.0.0.1:$port
PidFile $PWD/apache.pid
ErrorLog $PWD/log
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
DocumentRoot $PWD/html
AddOutputFilterByType DEFLATE text/plain
StartServers 1
ThreadsPerChild 8
MaxRequestWorkers 8
MinSpareThreads 1
MaxSpareThreads 8
END
  start apache2 -f "$PWD/apache.conf" -D FOREGROUND
  ready test -s apache.pid
  ready listening "$port"
  page=http://127.0.0.1:$port/10.txt
  ab -q -n "$(part 3000)" -c 6 "$page" >/dev/null
  ab -q -k -n "$(part 3000)" -c 6 -H 'Accept-Encoding: gzip' "$page" >/dev/null
  curl -s "$page" | cksum
  stop
}
