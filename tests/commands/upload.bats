# heaptape upload to heaptape receive, nginx, and misbehaving servers.
# shellcheck disable=SC2030,SC2031 # each test is a subshell
load ../helper
load ../receiver

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR HEAPTAPE_LIBEXEC HEAPTAPE_SPOOL http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY
  unset CURL_CA_BUNDLE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION AWS_DEFAULT_REGION port
  export HOME=$PWD
  needs_module upload libcurl
  mkdir -p spool/web1/redis-1 spool/web2/mysqld-7
  for i in 1 2 10; do
    head -c "${i}00000" /dev/urandom >spool/web1/redis-1/$i.ht
  done
  head -c 3000000 /dev/urandom >spool/web2/mysqld-7/1.ht
  : >spool/web2/mysqld-7/2.ht
  cp -r spool kept
  umask 077 # for tokens and keys
}

teardown() {
  no_servers
  show_failure
}

# upload OPTIONS...: uploads the spool to the server.
upload() {
  heaptape upload "$@" spool "${scheme:-http}://127.0.0.1:$port/"
}

@test "upload: removes files that the server has, and their folders" {
  needs_module receive libmicrohttpd
  start_receiver -v
  echo x >spool/web1/redis-1/11.ht.part
  echo x >spool/web1/.hidden.ht
  ln -s /etc/passwd spool/web1/link.ht
  ln -s / spool/web1/root
  upload -v
  expect "status 0" [ "$status" -eq 0 ]
  [ "${stderr_lines[5]}" = "heaptape: uploaded 5 files, 4.1 MiB, to http://127.0.0.1:$port/" ]
  diff -r -x .incoming kept up
  [ "$(cd spool && find . | sort | tr '\n' ' ')" = ". ./web1 ./web1/.hidden.ht ./web1/link.ht ./web1/redis-1 ./web1/redis-1/11.ht.part ./web1/root " ]
  # Files are uploaded in numerical order.
  [ "$(sed -n 's/.*: \(.*\) from .*/\1/p' received.log | head -3 | tr '\n' ' ')" = "web1/redis-1/1.ht web1/redis-1/2.ht web1/redis-1/10.ht " ]
  upload
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "uploaded 0 files, 0 B"
  # A second upload of files that the server has.
  cp -r kept again
  heaptape upload again "http://127.0.0.1:$port"
  expect "status 0" [ "$status" -eq 0 ]
  [ "$(ls again)" = "" ]
  stop_receiver
}

@test "upload: a server that starts later, and part of a spool" {
  needs_module receive libmicrohttpd
  port=$(free_port)
  "$HEAPTAPE" upload spool/web1/redis-1 "http://127.0.0.1:$port/a/b/" 2>upload.log 3>&- &
  local upload=$!
  wait_until grep -q 'tries again' upload.log
  start_receiver
  wait $upload
  diff -r kept/web1/redis-1 up/a/b
  grep -q 'accepts uploads again' upload.log
  [ "$(wc -l <upload.log)" -eq 3 ]
  [ -d spool/web1/redis-1 ]
  [ -e spool/web2/mysqld-7/1.ht ]
  stop_receiver
}

@test "upload: a server that never starts" {
  port=$(free_port)
  upload --wait 1
  expect "status 1" [ "$status" -eq 1 ]
  [ "${#stderr_lines[@]}" -eq 2 ]
  has "${stderr_lines[0]}" "web1/redis-1/1.ht: cannot be uploaded: "
  # Messages must not contain the duration of an attempt, because each would be unique.
  [ -z "$(grep -E 'after [0-9]+ ms' <<<"$stderr")" ]
  has "${stderr_lines[1]}" "heaptape: spool: 5 files were not uploaded, 4.1 MiB"
  diff -r kept spool
}

# slow_server HOW: accepts connections, but does not read, or answers early, never, or one byte at a
# time.
slow_server() {
  port=$(free_port)
  python3 - "$port" "$1" 3>&- <<'END' &
import socket, sys, threading, time
def serve(s):
    if sys.argv[2] in ("reads", "answers"):
        time.sleep(1000)
    read = 0
    while read < (1 if sys.argv[2] == "early" else 30000):
        part = s.recv(65536)
        if not part:
            return
        read += len(part)
    try:
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10000:
            s.sendall(bytes([byte]))
            time.sleep(0.3)
    except OSError:
        pass
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
END
  receiver=$!
  wait_until listening
}

@test "upload: a server that never finishes" {
  local how
  for how in reads early answers dribbles; do
    # Larger than the kernel's buffers, or small enough for them: a server that must read the body
    # may not get a CPU in time.
    case $how in
      reads | early) head -c 30000000 /dev/zero >spool/web1/redis-1/0.ht ;;
      *) head -c 30000 /dev/zero >spool/web1/redis-1/0.ht ;;
    esac
    cp spool/web1/redis-1/0.ht kept/web1/redis-1
    slow_server $how
    upload --timeout 2 --wait 1
    expect "status 1" [ "$status" -eq 1 ]
    case $how in
      early) has "$stderr" "within 2 s (--timeout)" ;;
      reads) has "$stderr" "0.ht: cannot be uploaded: the server did not read the next 64 KiB within 2 s (--timeout)" ;;
      *) has "$stderr" "0.ht: cannot be uploaded: the server did not answer within 2 s (--timeout)" ;;
    esac
    diff -r kept spool
    no_servers
  done
  heaptape upload --timeout 0 spool http://127.0.0.1:1/
  usage_fails "--timeout"
}

@test "upload: a server that closes the connection before its answer" {
  port=$(free_port)
  python3 - "$port" 3>&- <<'END' &
import re, socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
number = 0
def serve(s):
    global number
    head = b""
    while b"\r\n\r\n" not in head:
        more = s.recv(65536)
        if not more:
            return False
        head += more
    number += 1
    if number == 1:
        s.sendall(b"HTTP/1.1 100 Continue\r\n\r")
        s.shutdown(socket.SHUT_RDWR)
        return False
    if head.startswith(b"HEAD"):
        s.sendall(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
        return True
    left = int(re.search(rb"Content-Length: (\d+)", head)[1]) - len(head.split(b"\r\n\r\n", 1)[1])
    if left > 0:
        s.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    while left > 0:
        left -= len(s.recv(left))
    s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    return True
while True:
    s = server.accept()[0]
    while serve(s):
        pass
    s.close()
END
  receiver=$!
  wait_until listening
  upload
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "cannot be uploaded: the server closed the connection before it answered; heaptape tries again"
  [ -z "$(find spool -type f)" ]
}

@test "upload: tokens" {
  needs_module receive libmicrohttpd
  echo right >tokens
  start_receiver --token-file tokens
  upload
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "the server answered 401: the token is missing or wrong"
  echo wrong >token
  upload --token-file token
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "401"
  diff -r kept spool
  echo right >token
  upload --token-file token
  expect "status 0" [ "$status" -eq 0 ]
  diff -r -x .incoming kept up
  stop_receiver
}

@test "upload: files that the server refuses stay, and the others are uploaded" {
  needs_module receive libmicrohttpd
  start_receiver
  mkdir -p up/web1/redis-1
  echo other >up/web1/redis-1/2.ht
  upload
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "web1/redis-1/2.ht: the server answered 409: another file has this name; the file stays where it is"
  has "$stderr" "spool: 1 file was not uploaded, 195.3 KiB"
  [ "$(find spool -type f)" = spool/web1/redis-1/2.ht ]
  cmp kept/web1/redis-1/2.ht spool/web1/redis-1/2.ht
  [ "$(cat up/web1/redis-1/2.ht)" = other ]
  stop_receiver
}

@test "upload: over TLS, with a self-signed certificate" {
  needs_module receive libmicrohttpd
  command -v openssl >/dev/null || skip "no openssl"
  make_certificate
  start_receiver --certificate cert.pem --key key.pem
  scheme=https
  upload
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "certificate"
  diff -r kept spool
  CURL_CA_BUNDLE=none upload
  fails_with 1 "none (CURL_CA_BUNDLE): No such file"
  CURL_CA_BUNDLE=$PWD/cert.pem upload
  expect "status 0" [ "$status" -eq 0 ]
  diff -r -x .incoming kept up
  stop_receiver
}

@test "upload: to nginx, as WebDAV" {
  command -v nginx >/dev/null || skip "no nginx"
  mkdir up
  start_nginx "root $PWD/up; dav_methods PUT; create_full_put_path on;"
  receiver=$nginx
  upload
  expect "status 0" [ "$status" -eq 0 ]
  diff -r kept up
  kill "$receiver"
  wait "$receiver"
}

@test "upload: through nginx, in front of receive" {
  needs_module receive libmicrohttpd
  command -v nginx >/dev/null || skip "no nginx"
  local buffering nginx behind
  echo token >tokens
  start_receiver --token-file tokens
  behind=$port
  for buffering in on off; do
    start_nginx "location / { proxy_pass http://127.0.0.1:$behind; proxy_http_version 1.1;
      proxy_request_buffering $buffering; }"
    cp -r kept "$buffering"
    heaptape upload "$buffering" "http://127.0.0.1:$port/$buffering/"
    expect "status 1" [ "$status" -eq 1 ]
    has "$stderr" "the server answered 401: the token is missing or wrong"
    diff -r kept "$buffering"
    heaptape upload --token-file tokens "$buffering" "http://127.0.0.1:$port/$buffering/"
    expect "status 0" [ "$status" -eq 0 ]
    [ -z "$(find "$buffering" -type f)" ]
    diff -r kept "up/$buffering"
    kill "$nginx"
    wait "$nginx"
  done
  stop_receiver
}

@test "upload: the signature for S3 equals that of a second implementation" {
  cat >server.py <<'END'
import hashlib, hmac
def answer(h, path, body, number):
    fields = dict(f.strip().split("=", 1) for f in h["Authorization"].split(" ", 1)[1].split(","))
    scope = fields["Credential"].split("/")[1:]
    names = fields["SignedHeaders"].split(";")
    canonical = "\n".join(["PUT", path, ""] + [n + ":" + h[n].strip() for n in names] + ["", ";".join(names), h["x-amz-content-sha256"]])
    text = "\n".join(["AWS4-HMAC-SHA256", h["X-Amz-Date"], "/".join(scope), hashlib.sha256(canonical.encode()).hexdigest()])
    key = b"AWS4sec/ret+"
    for part in scope:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    good = hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == fields["Signature"]
    good = good and fields["Credential"].startswith("me/") and scope[1:] == ["eu-west-1", "s3", "aws4_request"]
    good = good and h["x-amz-security-token"] == "session" and "x-amz-security-token" in names
    return (200 if good else 403), {}
END
  start_server
  upload --s3
  fails_with 1 "--s3 needs a region"
  upload --s3=eu-west-1
  fails_with 1 "--s3 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
  export AWS_ACCESS_KEY_ID=me AWS_SECRET_ACCESS_KEY=sec/ret+ AWS_SESSION_TOKEN=session
  AWS_REGION=eu-west-2 upload --s3
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "answered 403"
  diff -r kept spool
  AWS_REGION=eu-west-1 upload --s3
  expect "status 0" [ "$status" -eq 0 ]
  [ -z "$(find spool -type f)" ]
}

@test "upload: an overloaded server is asked again after the requested time" {
  cat >server.py <<'END'
times = []
def answer(h, path, body, number):
    times.append(time.monotonic())
    if number == 1:
        return 503, {"Retry-After": "2"}
    if number == 2:
        return (500 if times[1] - times[0] >= 2 else 400), {}
    return 204, {}
END
  start_server
  upload
  expect "status 0" [ "$status" -eq 0 ]
  [ "$(grep -vc HEAD requests.log)" -eq 7 ]
  has "$stderr" "answered 503; heaptape tries again"
}

@test "upload: redirects are not followed" {
  cat >server.py <<'END'
def answer(h, path, body, number):
    return 307, {"Location": "http://127.0.0.1:1/"}
END
  start_server
  upload
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "answered 307"
  [ "$(wc -l <requests.log)" -eq 1 ]
  diff -r kept spool
}

@test "upload: killed while the server does not answer, and resumed" {
  needs_module receive libmicrohttpd
  echo 'def answer(h, path, body, number): return (200 if number < 3 else 0), {}' >server.py
  start_server
  "$HEAPTAPE" upload spool "http://127.0.0.1:$port/" 2>upload.log 3>&- &
  local upload=$!
  wait_until grep -q 10.ht requests.log
  kill -9 $upload
  wait $upload || true
  kill -9 "$receiver"
  [ "$(find spool -type f | wc -l)" -eq 3 ]
  unset port
  start_receiver
  upload
  expect "status 0" [ "$status" -eq 0 ]
  [ -z "$(find spool -type f)" ]
  cmp kept/web1/redis-1/10.ht up/web1/redis-1/10.ht
  diff -r kept/web2 up/web2
  stop_receiver
}

@test "upload: a signal ends it" {
  port=$(free_port)
  "$HEAPTAPE" upload --wait 1000 spool "http://127.0.0.1:$port/" 2>upload.log 3>&- &
  local upload=$!
  wait_until grep -q 'tries again' upload.log
  kill "$upload"
  local code=0
  wait "$upload" || code=$?
  [ "$code" -eq 1 ]
  diff -r kept spool
}

@test "upload: skips files that another process uploads" {
  needs_module receive libmicrohttpd
  command -v flock >/dev/null || skip "no flock"
  start_receiver
  flock spool/web1/redis-1 sleep 1000 3>&- &
  local holder=$!
  wait_until sh -c '! flock -n spool/web1/redis-1 true'
  upload
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "spool/web1/redis-1/1.ht: skipped, because another process"
  diff -r kept/web1 spool/web1
  diff -r kept/web2 up/web2
  pkill -P "$holder"
  wait "$holder" || true
  upload
  expect "status 0" [ "$status" -eq 0 ]
  diff -r -x .incoming kept up
  stop_receiver
}

@test "upload: errors at startup" {
  local url
  for url in ftp://h/ file:///etc/ host/path / http:// "http://me:password@h/" "http://h/?a=b" "http://h/a b"; do
    heaptape upload spool "$url"
    usage_fails "URL"
  done
  heaptape upload none http://127.0.0.1:1/
  fails_with 1 "none: No such file"
  heaptape upload --token-file none spool http://127.0.0.1:1/
  fails_with 1 "none: No such file"
  echo token >token
  chmod 604 token
  heaptape upload --token-file token spool http://127.0.0.1:1/
  fails_with 1 "token: every user has access (mode 0604): expected mode 0600 or 0640; run 'chmod 600 token'"
  mkfifo pipe
  heaptape upload --token-file pipe spool http://127.0.0.1:1/
  fails_with 1 "pipe: is not a regular file"
  HEAPTAPE_LIBEXEC=$PWD heaptape upload spool http://127.0.0.1:1/
  fails_with 1 "libheaptape-upload.so: not found; install libcurl4-openssl-dev and build heaptape again"
  echo x >libheaptape-upload.so
  HEAPTAPE_LIBEXEC=$PWD heaptape upload spool http://127.0.0.1:1/
  fails_with 1 "libheaptape-upload.so: cannot be loaded: " "file too short"
}
