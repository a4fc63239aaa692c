# heaptape upload removes a file only after the server has received the whole file, even if a proxy
# is between them.
# shellcheck disable=SC2030,SC2031 # each test is a subshell
load ../helper
load ../receiver

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  unset NO_COLOR HEAPTAPE_LIBEXEC HEAPTAPE_SPOOL http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY
  unset CURL_CA_BUNDLE AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION AWS_DEFAULT_REGION port
  export HOME=$PWD
  needs_module upload libcurl
  mkdir -p spool/web1/redis-1
}

teardown() {
  [ -z "${proxy:-}" ] || kill -9 "$proxy" 2>/dev/null || true
  [ -z "${proxy:-}" ] || wait "$proxy" 2>/dev/null || true
  no_servers
  show_failure
}

# make_files N BYTES: writes N files to the spool and to kept/.
make_files() {
  local i
  for i in $(seq "$1"); do
    head -c "$2" /dev/urandom >spool/web1/redis-1/$i.ht
  done
  cp -r spool kept
}

# start_proxy HOW: starts tests/put_proxy.py on $port in front of the receiver.
start_proxy() {
  needs_module receive libmicrohttpd
  start_receiver -v
  local server=$port
  port=$(free_port)
  python3 "$HEAPTAPE_SOURCE/tests/put_proxy.py" "$port" "$server" "$1" 2>proxy.log 3>&- &
  proxy=$!
  wait_until listening
}

# The limits end no upload on a busy machine.
upload() {
  heaptape upload --timeout 600 --wait 600 "$@" spool "http://127.0.0.1:$port/"
}

# all_arrived: the server has each file once, and the spool is empty.
all_arrived() {
  expect "status 0" [ "$status" -eq 0 ]
  diff -r -x .incoming kept up
  [ -z "$(find spool -type f)" ]
  [ "$(grep -c 'stored (201)' received.log)" -eq "$(find kept -type f | wc -l)" ]
}

# all_kept: the spool still has all files.
all_kept() {
  expect "status 1" [ "$status" -eq 1 ]
  diff -r kept spool
}

# Larger than the kernel's buffers of a connection.
early_bytes=10000000

@test "upload: an answer before the body is read" {
  make_files 3 $early_bytes
  start_proxy early
  upload
  all_arrived
  has "$stderr" "the server answered 200 before it had received the whole file; heaptape tries again"
}

@test "upload: an answer before the server's kernel has the body" {
  make_files 3 200000
  start_proxy buffer
  upload
  all_arrived
  has "$stderr" "the server answered 200 before it had received the whole file; heaptape tries again"
}

@test "upload: an answer before the body, which the server reads and drops" {
  make_files 3 $early_bytes
  start_proxy discard
  upload
  all_arrived
  has "$stderr" "the server answered 200 before it had received the whole file; heaptape tries again"
}

@test "upload: a late answer" {
  make_files 2 3000000
  start_proxy late
  upload
  all_arrived
  [ "${#stderr_lines[@]}" -eq 1 ]
}

@test "upload: a missing answer" {
  make_files 2 3000
  start_proxy never
  "$HEAPTAPE" upload spool "http://127.0.0.1:$port/" 2>upload.log 3>&- &
  local upload=$!
  wait_until grep -q 'stored (201)' received.log
  kill "$upload"
  status=0
  wait "$upload" || status=$?
  all_kept
  # The server has the first file; uploading it again adds no second file.
  find_port
  upload
  all_arrived
  [ "$(grep -c 'was stored before (200)' received.log)" -eq 1 ]
}

@test "upload: byte by byte" {
  make_files 3 3000
  start_proxy byte
  upload
  all_arrived
}

@test "upload: the connection is cut at each of 50 places" {
  make_files 50 20000
  start_proxy cut
  upload --wait 300
  all_arrived
  has "$stderr" "tries again"
}

@test "upload: through nginx to receive" {
  command -v nginx >/dev/null || skip "no nginx"
  needs_module receive libmicrohttpd
  make_files 3 3000000
  start_receiver -v
  local server=$port
  start_nginx "location / { proxy_pass http://127.0.0.1:$server; }"
  proxy=$nginx
  upload
  all_arrived
}

# answers HEAD [HEADERS]: starts a server that answers PUT with 200 and HEADERS, and HEAD with HEAD.
# Both are Python expressions.
answers() {
  cat >server.py <<END
import hashlib
def answer(h, path, body, number): return 200, ${2:-{\}}
def head(path): return $1
END
  start_server
}

# was_asked: the client sent HEAD for the first file.
was_asked() {
  grep -q 'HEAD /web1/redis-1/1.ht' requests.log
}

@test "upload: a server without the file afterwards" {
  make_files 2 3000
  answers '(404, {"Content-Length": "0"})'
  upload --wait 1
  all_kept
  has "$stderr" "1.ht: cannot be uploaded: the server answered 200, but does not have the file: it answered 404 to HEAD"
}

@test "upload: a server with part of the file" {
  make_files 2 3000
  answers '(200, {"Content-Length": "2999"})'
  upload --wait 1
  all_kept
  has "$stderr" "the server answered 200, but has 2999 of 3000 bytes"
}

@test "upload: servers that have the file, or do not answer HEAD" {
  local head
  for head in '(200, {"Content-Length": "3000"})' '(200, {})' '(403, {"Content-Length": "0"})' '(405, {"Content-Length": "0"})'; do
    rm -rf spool kept
    mkdir -p spool/web1/redis-1
    make_files 2 3000
    answers "$head"
    upload
    expect "status 0 with $head" [ "$status" -eq 0 ]
    [ -z "$(find spool -type f)" ]
    was_asked
    no_servers
  done
}

@test "upload: a digest in the answer" {
  make_files 1 3000
  answers '(404, {"Content-Length": "0"})' '{"ETag": "\"" + hashlib.md5(body).hexdigest() + "\""}'
  upload
  expect "status 0" [ "$status" -eq 0 ]
  [ -z "$(find spool -type f)" ]
  ! was_asked || false
  no_servers
  # A wrong digest in the format of receive.
  cp -r kept/web1 spool
  answers '(200, {"Content-Length": "3000"})' '{"Heaptape-XXH3-128": "0123456789abcdef0123456789abcdef"}'
  upload --wait 1
  all_kept
  has "$stderr" "the server answered 200, but has other bytes, by its digest"
}

@test "upload: the ETag of S3" {
  export AWS_ACCESS_KEY_ID=me AWS_SECRET_ACCESS_KEY=secret
  make_files 1 3000
  local wrong='"ETag": "\"" + hashlib.md5(body[1:]).hexdigest() + "\""'
  answers '(200, {"Content-Length": "3000"})' "{$wrong, 'x-amz-server-side-encryption': 'AES256'}"
  upload --s3=eu-west-1 --wait 1
  all_kept
  has "$stderr" "has other bytes, by its digest"
  ! was_asked || false
  no_servers
  # With a user's key, the ETag of S3 is not the MD5.
  answers '(200, {"Content-Length": "3000"})' "{$wrong, 'x-amz-server-side-encryption': 'aws:kms'}"
  upload --s3=eu-west-1
  expect "status 0" [ "$status" -eq 0 ]
  was_asked
  [ -z "$(find spool -type f)" ]
}

@test "upload: a file that is still being written is skipped" {
  skip_under_sanitizer
  needs_module receive libmicrohttpd
  start_receiver
  "$HEAPTAPE" record -q -o spool/web1/redis-1/1.ht -- sh -c 'ls / >/dev/null; until [ -e go ]; do sleep 0.1; done' 3>&- &
  local recorder=$!
  wait_until [ -s spool/web1/redis-1/1.ht ]
  upload
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "spool/web1/redis-1/1.ht: is being written; the file stays where it is"
  touch go
  wait "$recorder"
  cp -r spool kept
  upload
  expect "status 0" [ "$status" -eq 0 ]
  diff -r -x .incoming kept up
}

@test "upload: a file that changes during the upload is kept" {
  make_files 1 3000
  cat >server.py <<END
def answer(h, path, body, number):
    with open("spool/web1/redis-1/1.ht", "ab") as f: f.write(b"x")
    return 200, {}
END
  start_server
  upload
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "spool/web1/redis-1/1.ht: is being written; the file stays where it is"
  [ "$(stat -c %s spool/web1/redis-1/1.ht)" -eq 3001 ]
}
