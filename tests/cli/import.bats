load ../helper

@test "formats are listed, and asked for" {
  heaptape help import
  [ "$status" -eq 0 ]
  has "$output" "json: "
  echo '{}' >x.json
  heaptape import x.json
  usage_fails "--format is missing"
  heaptape import -F jsno x.json
  usage_fails "jsno"
}

@test "json: survives import, export, import" {
  cat >a.json <<'JSON'
{"kind":"malloc","pid":5,"tid":5,"size":32,"result":"0x1000"}
{"kind":"calloc","pid":5,"tid":6,"size":8,"count":4,"result":"0x2000"}
{"kind":"realloc","pid":5,"tid":5,"size":64,"old_ptr":"0x1000","result":"0x3000"}

{"kind":"free","pid":5,"tid":6,"ptr":"0x3000","more":[1,{"a":"]"}]}
{"kind":"mark","pid":5,"tid":6,"text":"a\"b\u00e9"}
{"kind":"malloc","pid":5,"tid":5,"size":3200000000000,"result":"0x0"}
JSON
  heaptape import -F json a.json
  [ "$status" -eq 0 ]
  has "$stderr" "6 events, 2 threads"
  "$HEAPTAPE" dump --format json a.json.htw >dump
  heaptape export -F json -o b.json a.json.htw
  [ "$status" -eq 0 ]
  cmp b.json dump
  "$HEAPTAPE" import -q -F json b.json
  "$HEAPTAPE" dump --format json b.json.htw | cmp - dump
}

@test "json: what is wrong is named with its line" {
  try() {
    printf '{"kind":"malloc","pid":1,"tid":1,"size":1,"result":"0x10"}\n%b\n' "$1" >bad.json
    heaptape import -F json -o out.htw bad.json
    fails_with 1 "bad.json: expected $2" "in line 2"
    [ ! -e out.htw ]
    heaptape import -k -F json -o out.htw bad.json
    [ "$status" -eq 0 ]
    has "$stderr" "1 bad pieces skipped; the first: bad.json: expected $2"
    rm out.htw
  }
  try '{"kind":"mallok","pid":1,"tid":1}' "a kind of event"
  try '{"kind":"malloc","pid":1}' "the key tid"
  try '{"kind":"malloc"' "a comma or the end of the object"
  try '{"kind":"malloc","size":-1}' "a whole number"
  try '{"kind":"malloc","size":99999999999999999999}' "a number of 64 bits"
  try '{"kind":"free","ptr":"here"}' "an address"
  try '{"kind":"mal' "the end of a string"
  try '[1,2]' "an object"
  try 'a\0b' "text, found a NUL byte"
}

@test "json: empty and random files are refused" {
  : >empty
  heaptape import -F json -o out.htw empty
  fails_with 1 "empty: is empty"
  head -c 100000 /dev/urandom >random
  heaptape import -F json -o out.htw random
  fails_with 1 "random: expected"
  echo >blank
  heaptape import -F json -o out.htw blank
  fails_with 1 "holds no events"
}

@test "formats are listed for scripts" {
  heaptape import --list
  [ "$status" -eq 0 ]
  has " ${lines[*]} " " tcmalloc "
  has " ${lines[*]} " " json "
  heaptape export --list
  has " ${lines[*]} " " json "
  [[ " ${lines[*]} " != *" tcmalloc "* ]]
  heaptape import -F json
  usage_fails "FILE is missing"
}
