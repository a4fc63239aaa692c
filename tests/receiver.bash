# Servers for the tests of uploads: `load ../receiver`, after helper.

# run_receiver TEXT OPTIONS...: starts heaptape receive into up/, and waits for TEXT in
# received.log.
run_receiver() {
  local text=$1
  shift
  # The shell truncates the log only later, in the server's process, so remove old text first.
  : >received.log
  "$HEAPTAPE" receive --dir up "$@" 2>received.log 3>&- &
  receiver=$!
  wait_until grep -q "$text" received.log
}

# start_receiver OPTIONS...: starts a receiver on port $port, or on a free port if that is unset.
start_receiver() {
  run_receiver 'listening on' --listen "127.0.0.1:${port:-$(free_port)}" "$@"
  find_port
}

# find_port: sets $port to the port of the receiver.
find_port() {
  port=$(sed -n 's/.*listening on .*:\([0-9]*\)\/$/\1/p' received.log)
  [ -n "$port" ]
}

# stop_receiver: ends the receiver and checks that it leaves no unfinished files.
stop_receiver() {
  kill "$receiver"
  wait "$receiver"
  [ -z "$(ls up/.incoming)" ]
}

# no_servers: for teardown.
no_servers() {
  [ -z "${receiver:-}" ] || kill -9 "$receiver" 2>/dev/null || true
  [ -z "${receiver:-}" ] || wait "$receiver" 2>/dev/null || true
}

# make_certificate: makes a self-signed certificate for 127.0.0.1, cert.pem and key.pem.
make_certificate() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 \
    -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem 2>openssl.log
}

needs_module() {
  local library
  library=$(find "$HEAPTAPE_BUILD/src/transfer" -name "libheaptape-$1.so")
  [ -n "$library" ] || skip "heaptape was built without $2"
}

# free_port: prints a port without a listener. The kernel gives no other socket a port of this range,
# and concurrent tests get different ports, so a server can be stopped and started again.
free_port() {
  local port
  (
    flock 8
    read -r port <&8 || port=$((10000 + RANDOM % 20000))
    while port=$((10000 + (port - 9999) % 20000)) && listening; do :; done
    echo "$port" >"/tmp/heaptape-test-port.$UID"
    echo "$port"
  ) 8<>"/tmp/heaptape-test-port.$UID"
}

# start_server: starts tests/put_server.py with server.py. Its requests are in requests.log.
start_server() {
  port=$(free_port)
  python3 "$HEAPTAPE_SOURCE/tests/put_server.py" "$port" >requests.log 2>server.log 3>&- &
  receiver=$!
  wait_until listening
}

listening() {
  (exec 9<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null
}

# start_nginx DIRECTIVES: starts nginx with these in its server block, on a new $port; sets $nginx
# to its pid.
start_nginx() {
  port=$(free_port)
  cat >nginx.conf <<END
daemon off;
$([ "$(id -u)" -ne 0 ] || echo "user root;")
pid nginx.pid;
error_log nginx.log;
events {}
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path t1; fastcgi_temp_path t2; uwsgi_temp_path t3; scgi_temp_path t4;
  server {
    listen 127.0.0.1:$port;
    client_max_body_size 0;
    $1
  }
}
END
  nginx -p "$PWD" -c nginx.conf -e nginx.log 3>&- &
  nginx=$!
  wait_until listening
}
