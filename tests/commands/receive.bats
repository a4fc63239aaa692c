# heaptape receive: the server for uploads, with curl as the client.
# shellcheck disable=SC2030,SC2031 # each test is a subshell
load ../helper
load ../receiver

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR HEAPTAPE_LIBEXEC HEAPTAPE_SPOOL http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY
  needs_module receive libmicrohttpd
  command -v curl >/dev/null || skip "no curl"
  head -c 3000000 /dev/urandom >large.ht
  echo small >small.ht
  umask 077 # for tokens and keys
}

teardown() {
  no_servers
  show_failure
}

# put STATUS FILE PATH CURL_OPTIONS...: uploads and checks the status.
put() {
  local want=$1 file=$2 path=$3 got
  shift 3
  got=$(curl -sS -o answer -w '%{http_code}' --path-as-is -T "$file" "$@" "${scheme:-http}://127.0.0.1:$port/$path")
  [ "$got" = "$want" ] || { echo "PUT $path: $got, not $want: $(cat answer)"; return 1; }
}

@test "receive: files are stored; equal files are accepted again, others refused" {
  start_receiver
  put 201 large.ht web1/redis-1/1.ht
  put 201 small.ht web1/redis-1/2.ht
  put 201 small.ht a/b/c/d/e/f/g/2.ht
  put 200 large.ht web1/redis-1/1.ht
  put 409 small.ht web1/redis-1/1.ht
  : >empty.ht
  # An empty file is replaced, but does not replace another file.
  put 201 empty.ht web1/redis-1/3.ht
  put 200 empty.ht web1/redis-1/3.ht
  put 201 large.ht web1/redis-1/3.ht
  put 409 small.ht web1/redis-1/3.ht
  put 409 empty.ht web1/redis-1/3.ht
  cmp large.ht up/web1/redis-1/3.ht
  [ -z "$(find up/.incoming -type f)" ]
  put 201 large.ht web2/x/1.ht -H "Transfer-Encoding: chunked"
  cmp large.ht up/web1/redis-1/1.ht
  cmp small.ht up/web1/redis-1/2.ht
  cmp large.ht up/web2/x/1.ht
  [ "$(find up -type f | wc -l)" -eq 5 ]
  [ "$(stat -c %a up/web1/redis-1/1.ht)" = 600 ]
  stop_receiver
}

@test "receive: names that leave the folder, and other methods" {
  local path
  start_receiver
  for path in 1.ht a/1.ht a/../../b/1.ht ../a/b/1.ht %2e%2e/a/b/1.ht a/b%2f..%2f..%2f/1.ht /etc/a/1.ht a/b/1.txt a/b/.ht \
    a/.b/1.ht .incoming/b/1.ht a/b/1.ht%0a a/b/%00.ht 1/2/3/4/5/6/7/8/9.ht "a/$(printf '%0129d' 0)/1.ht"; do
    put 400 small.ht "$path"
    put 400 large.ht "$path"
  done
  put 405 small.ht a/b/1.ht -X POST
  put 405 small.ht a/b/1.ht -X DELETE
  [ "$(curl -s -o answer -w '%{http_code}' "http://127.0.0.1:$port/")" = 405 ]
  [ -z "$(find . -name up -prune -o -name '*.ht' ! -name large.ht ! -name small.ht -print)" ]
  [ "$(find up | sort | tr '\n' ' ')" = "up up/.incoming " ]
  stop_receiver
}

@test "receive: tokens, which can be replaced while it runs" {
  printf 'first\nsecond\n' >tokens
  start_receiver --token-file tokens
  put 401 small.ht a/b/1.ht
  put 401 large.ht a/b/1.ht
  put 401 small.ht a/b/1.ht -H "Authorization: Bearer firs"
  put 401 small.ht a/b/1.ht -H "Authorization: Basic first"
  put 201 small.ht a/b/1.ht -H "Authorization: Bearer first"
  put 201 small.ht a/b/2.ht -H "Authorization: Bearer second"
  echo third >tokens
  put 401 small.ht a/b/3.ht -H "Authorization: Bearer first"
  put 201 small.ht a/b/3.ht -H "Authorization: Bearer third"
  rm tokens
  put 401 small.ht a/b/4.ht -H "Authorization: Bearer third"
  grep -q 'tokens: No such file' received.log
  [ "$(find up -name '*.ht' | wc -l)" -eq 3 ]
  stop_receiver
}

# raw STATUS REQUEST [TEXT]: sends the text (a format of printf); the server must answer STATUS, with
# a body that has TEXT, and close the connection.
raw() {
  local got
  # shellcheck disable=SC2059
  printf "$2" >request
  got=$(exec 3<>"/dev/tcp/127.0.0.1/$port" && cat request >&3 && timeout 60 cat <&3 | tr -d '\r\0')
  case $got in
    "HTTP/1.1 $1 "*"${3:-}"*) ;;
    *) echo "$2: '$got', not $1 ${3:-}" && return 1 ;;
  esac
}

# answered STATUS TEXT FILE PATH CURL_OPTIONS...: like put, and the body of the answer is TEXT.
answered() {
  local want=$1 text=$2
  shift 2
  put "$want" "$@"
  [ "$(cat answer)" = "$text" ] || { echo "answer: $(cat answer)"; return 1; }
}

@test "receive: each refusal names its reason" {
  local put='PUT /a/b/1.ht HTTP/1.1\r\nHost: x\r\nConnection: close\r\n'
  echo token >tokens
  start_receiver --token-file tokens --max-size 1M
  answered 401 "the token is missing or wrong" small.ht a/b/1.ht
  local known=(-H "Authorization: Bearer token")
  answered 405 "only PUT is allowed" small.ht a/b/1.ht -X POST "${known[@]}"
  answered 400 "expected the path /HOST/PROCESS/NAME.ht of letters, digits and ._+-" small.ht a/1.ht "${known[@]}"
  answered 413 "the file is larger than --max-size" large.ht a/b/1.ht "${known[@]}"
  answered 413 "the file is larger than --max-size" large.ht a/b/1.ht -H "Transfer-Encoding: chunked" "${known[@]}"
  put 201 small.ht a/b/1.ht "${known[@]}"
  : >up/a/file
  answered 409 "a file and a directory have the same name" small.ht a/file/1.ht "${known[@]}"
  put+='Authorization: Bearer token\r\n'
  raw 411 "$put\r\nhello" "expected a Content-Length, or Transfer-Encoding: chunked"
  raw 400 "${put}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" "more than one Content-Length"
  raw 400 "${put}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" \
    "Content-Length and Transfer-Encoding exclude each other"
  raw 400 "${put}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" "the only Transfer-Encoding allowed is chunked"
  raw 400 "${put/1.1/1.0}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" "Transfer-Encoding needs HTTP/1.1"
  raw 400 "${put}Content-Length : 5\r\n\r\nhello" "the name of a header field has a space"
  raw 400 "${put/1.ht/1.ht\\0x}Content-Length: 5\r\n\r\nhello" "the path has a NUL"
  raw 400 "${put/1.ht/2.ht}Content-Length: 5\r\nContent-Range: bytes 0-4/9\r\n\r\nhello" "a part of a file (Content-Range)"
  # No refused body keeps the true file out.
  put 201 small.ht a/b/2.ht "${known[@]}"
  stop_receiver
}

@test "receive: a body with an ambiguous length" {
  local put='PUT /a/b/1.ht HTTP/1.1\r\nHost: x\r\nConnection: close\r\n' chunk='5\r\nhello\r\n0\r\n\r\n' fields
  start_receiver
  raw 411 "PUT /a/b/1.ht HTTP/1.0\r\n\r\nhello"
  raw 411 "$put\r\nhello"
  for fields in 'Content-Length: 5\r\nContent-Length: 6' 'Content-Length: 5\r\ncontent-length: 5' 'Content-Length: 5, 5' \
    'Content-Length: +5' 'Content-Length: -5' 'Content-Length: 0x5' 'Content-Length:' 'Content-Length : 5'; do
    raw 400 "$put$fields\r\n\r\nhello"
  done
  for fields in 'Content-Length: 5\r\nTransfer-Encoding: chunked' 'Transfer-Encoding: chunked\r\nContent-Length: 20' \
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked' 'Transfer-Encoding: gzip, chunked' \
    'Transfer-Encoding: identity' 'Transfer-Encoding: chunked\r\nContent-Length : 5'; do
    raw 400 "$put$fields\r\n\r\n$chunk"
  done
  raw 400 "PUT /a/b/1.ht HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n$chunk"
  raw 413 "${put}Content-Length: 99999999999999999999999\r\n\r\nhello"
  [ -z "$(find up -name '*.ht')" ]
  raw 201 "${put}Content-Length: 5\r\n\r\nhello"
  raw 200 "${put}Transfer-Encoding: Chunked\r\n\r\n$chunk"
  raw 200 "PUT /a/b/1.ht HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello"
  [ "$(cat up/a/b/1.ht)" = hello ]
  stop_receiver
}

@test "receive: a NUL in the path" {
  local path body='Host: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello'
  start_receiver
  for path in 1.ht%%00 1.ht%%00x %%001.ht '1.ht\0' '1.ht\0x' '1.ht\0/../../../2.ht' '1.ht?a\0b'; do
    raw 400 "PUT /a/b/$path HTTP/1.1\r\n$body"
  done
  [ -z "$(find up -name '*.ht')" ]
  raw 201 "PUT /a/b/%%31%%2b.ht?query HTTP/1.1\r\n$body"
  [ "$(cat up/a/b/1+.ht)" = hello ]
  stop_receiver
}

@test "receive: clients without a token that never finish their headers" {
  echo token >tokens
  start_receiver --token-file tokens
  # More connections than a server with a fixed limit would accept.
  python3 - "$port" <<'END'
import socket, sys
def put(number, fields, **options):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60, **options)
    s.sendall(b"PUT /a/b/%d.ht HTTP/1.1\r\nHost: x\r\n%s" % (number, fields))
    return s
good = b"Authorization: Bearer token\r\nContent-Length: 1\r\n\r\n"
slow = [put(1, b"X: ") for i in range(400)]
# The token is checked before the body arrives.
slow += [put(2, b"Content-Length: 1000\r\n\r\n") for i in range(300)]
s = put(3, good + b"x")
assert s.recv(100).startswith(b"HTTP/1.1 201 ")
# One address has all the uploads that an address may have; another address is still served.
held = [put(1000 + i, b"Expect: 100-continue\r\n" + good, source_address=("127.0.0.2", 0)) for i in range(64)]
for h in held:
    assert h.recv(100).startswith(b"HTTP/1.1 100 ")
s = put(4, good + b"x", source_address=("127.0.0.2", 0))
assert s.recv(100).startswith(b"HTTP/1.1 503 "), "the 65th upload of an address"
s = put(5, good + b"x")
assert s.recv(100).startswith(b"HTTP/1.1 201 ")
for h in held:
    h.sendall(b"x")
    assert h.recv(100).startswith(b"HTTP/1.1 201 ")
# The time limit of the headers ends a connection that no other connection replaces.
s = put(6, b"X: ")
s.settimeout(600)
assert s.recv(1) == b""
END
  [ "$(find up -name '*.ht' | wc -l)" -eq 66 ]
  stop_receiver
}

@test "receive: permissions of secret files" {
  local kind
  command -v openssl >/dev/null || skip "no openssl"
  make_certificate
  echo token >tokens
  mkfifo pipe
  for kind in "--token-file tokens" "--certificate cert.pem --key key.pem"; do
    chmod 644 tokens key.pem
    # shellcheck disable=SC2086
    heaptape receive --dir up --listen 127.0.0.1:0 $kind
    fails_with 1 ": every user has access (mode 0644): expected mode 0600 or 0640; run 'chmod 600 ${kind##* }'"
    chmod 602 tokens key.pem
    # shellcheck disable=SC2086
    heaptape receive --dir up --listen 127.0.0.1:0 $kind
    fails_with 1 "(mode 0602)"
  done
  chmod 640 tokens key.pem
  chmod 644 cert.pem
  start_receiver --token-file tokens --certificate cert.pem --key key.pem
  scheme=https
  put 201 small.ht a/b/1.ht --cacert cert.pem -H "Authorization: Bearer token"
  chmod 644 tokens
  put 401 small.ht a/b/2.ht --cacert cert.pem -H "Authorization: Bearer token"
  grep -q 'tokens: every user has access' received.log
  stop_receiver
  for kind in "--token-file pipe" "--certificate pipe --key key.pem" "--certificate cert.pem --key pipe"; do
    # shellcheck disable=SC2086
    heaptape receive --dir up --listen 127.0.0.1:0 $kind
    fails_with 1 "pipe: is not a regular file"
  done
}

@test "receive: TLS 1.2 and 1.3, but nothing older" {
  local version
  command -v openssl >/dev/null || skip "no openssl"
  make_certificate
  start_receiver --certificate cert.pem --key key.pem
  connects() {
    openssl s_client -connect "127.0.0.1:$port" "$1" -cipher DEFAULT@SECLEVEL=0 </dev/null >s_client.log 2>&1
  }
  for version in -tls1_2 -tls1_3; do
    connects $version || { cat s_client.log; return 1; }
  done
  for version in -tls1 -tls1_1; do
    ! connects $version || return 1
    ! grep -q 'no protocols available\|Unknown option' s_client.log || skip "this openssl has no $version"
  done
  stop_receiver
}

@test "receive: over TLS" {
  command -v openssl >/dev/null || skip "no openssl"
  make_certificate
  start_receiver --certificate cert.pem --key key.pem
  scheme=https
  put 201 large.ht a/b/1.ht --cacert cert.pem
  cmp large.ht up/a/b/1.ht
  run curl -sS -T small.ht "https://127.0.0.1:$port/a/b/2.ht"
  expect "an unknown certificate" [ "$status" -eq 60 ]
  stop_receiver
}

@test "receive: warns about settings that expose it" {
  local address
  echo token >tokens
  for address in 0.0.0.0 ''; do
    run_receiver 'without --token-file, anyone' --listen "$address:0"
    stop_receiver
    run_receiver 'without --certificate, ' --listen "$address:0" --token-file tokens
    stop_receiver
  done
  start_receiver
  [ "$(wc -l <received.log)" -eq 1 ]
  stop_receiver
}

@test "receive: by IPv4 and IPv6" {
  grep -q ' lo$' /proc/net/if_inet6 || skip "no IPv6"
  run_receiver token-file --listen :0
  find_port
  put 201 small.ht a/b/1.ht
  curl -fsS -T small.ht "http://[::1]:$port/a/b/2.ht"
  stop_receiver
  run_receiver 'listening on http://\[::1\]:' --listen '[::1]:0'
  find_port
  curl -fsS -T small.ht "http://[::1]:$port/a/b/3.ht"
  stop_receiver
  [ "$(find up -name '*.ht' | wc -l)" -eq 3 ]
}

@test "receive: a file that is too large, announced or not" {
  start_receiver --max-size 1M
  put 413 large.ht a/b/1.ht
  put 413 large.ht a/b/1.ht -H "Expect:" -H "Transfer-Encoding: chunked"
  put 201 small.ht a/b/1.ht
  [ "$(find up -name '*.ht' | wc -l)" -eq 1 ]
  stop_receiver
}

@test "receive: a full disk, and space again" {
  unshare -rm true 2>unshare.log || skip "no user and mount namespaces"
  mkdir up
  # shellcheck disable=SC2016
  unshare -rm sh -c 'mount -t tmpfs -o size=2m tmpfs up && exec "$0" receive --listen 127.0.0.1:0 --dir up' "$HEAPTAPE" 2>received.log 3>&- &
  receiver=$!
  wait_until grep -q . received.log
  find_port || skip "no tmpfs: $(cat received.log)"
  put 507 large.ht a/b/1.ht
  put 507 large.ht a/b/1.ht -H "Expect:" -H "Transfer-Encoding: chunked"
  grep -q 'full.*507' received.log
  put 201 small.ht a/b/1.ht
  [ -z "$(ls "/proc/$receiver/root/$PWD/up/.incoming" 2>/dev/null)" ]
  kill "$receiver"
  wait "$receiver"
}

# A client that stops in the middle of a file.
begin_upload() {
  exec 7<>"/dev/tcp/127.0.0.1/$port"
  printf 'PUT /a/b/1.ht HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n' >&7
  head -c 1000000 large.ht >&7
  wait_until incoming
}

incoming() {
  [ -n "$(ls up/.incoming)" ]
}

not_incoming() {
  [ -z "$(ls up/.incoming)" ]
}

@test "receive: a client that disconnects, and a signal in the middle of a file" {
  start_receiver
  begin_upload
  exec 7>&-
  wait_until not_incoming
  begin_upload
  stop_receiver
  exec 7>&-
  [ -z "$(find up -name '*.ht')" ]
}

@test "receive: killed in the middle of a file, and restarted" {
  start_receiver
  begin_upload
  kill -9 "$receiver"
  wait "$receiver" || true
  exec 7>&-
  incoming
  port=0
  start_receiver
  [ -z "$(ls up/.incoming)" ]
  put 201 large.ht a/b/1.ht
  cmp large.ht up/a/b/1.ht
  run "$HEAPTAPE" receive --listen 127.0.0.1:0 --dir up
  expect "status 1" [ "$status" -eq 1 ]
  has "$output" "up: another receiver uses this directory"
  stop_receiver
}

@test "receive: uploads at the same time" {
  local i pids=()
  start_receiver
  for i in 1 2 3 4 5 6 7 8; do
    put 201 large.ht "host$i/p/1.ht" 3>&- &
    pids+=($!)
    (put 201 small.ht same/p/1.ht || put 200 small.ht same/p/1.ht) 3>&- &
    pids+=($!)
  done
  for i in "${pids[@]}"; do
    wait "$i"
  done
  for i in 1 2 3 4 5 6 7 8; do
    cmp large.ht "up/host$i/p/1.ht"
  done
  cmp small.ht up/same/p/1.ht
  stop_receiver
}

@test "receive: errors at startup" {
  heaptape receive
  usage_fails "--dir is missing"
  heaptape receive --dir up --key k
  usage_fails "--certificate and --key"
  heaptape receive --dir up --listen 127.0.0.1
  fails_with 1 "expected HOST:PORT"
  for port in 65536 99999999999999999999 -1; do
    heaptape receive --dir up --listen 127.0.0.1:$port
    fails_with 1 "--listen 127.0.0.1:$port: expected HOST:PORT"
  done
  heaptape receive --dir up --listen 192.0.2.1:0
  fails_with 1 "--listen 192.0.2.1:0: Cannot assign"
  heaptape receive --dir up --token-file none
  fails_with 1 "none: No such file"
  heaptape receive --dir small.ht
  fails_with 1 "small.ht: Not a directory"
  heaptape receive --dir up --certificate small.ht --key small.ht
  fails_with 1 "small.ht: is not a PEM file"
  printf -- '-----BEGIN CERTIFICATE-----\n' >bad.pem
  heaptape receive --dir up --listen 127.0.0.1:0 --certificate bad.pem --key bad.pem
  fails_with 1 "bad.pem, bad.pem: the server cannot start"
}
