load ../helper

@test "formats are listed, and required" {
  heaptape help import
  [ "$status" -eq 0 ]
  has "$output" "  json  "
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

@test "json: the last line needs no newline, and trailing blanks count as characters" {
  printf '{"kind":"malloc","pid":1,"tid":1,"size":1,"result":"0x10"}' >a.json
  heaptape import -F json a.json
  [ "$status" -eq 0 ]
  has "$stderr" "1 event,"
  printf '{"kind":"malloc"  \n' >bad.json
  heaptape import -F json bad.json
  fails_with 1 "expected a comma or the end of the object at character 19" "in line 1"
}

@test "json: errors name the line" {
  refused() {
    printf '{"kind":"malloc","pid":1,"tid":1,"size":1,"result":"0x10"}\n%b\n' "$1" >bad.json
    heaptape import -F json -o out.htw bad.json
    fails_with 1 "bad.json: $2" "in line 2"
    [ ! -e out.htw ]
    heaptape import -k -F json -o out.htw bad.json
    [ "$status" -eq 0 ]
    has "$stderr" "skipped 1 invalid record, the first: bad.json: $2"
    rm out.htw
  }
  try() {
    refused "$1" "expected $2"
  }
  refused '{"kind":"mallok","pid":1,"tid":1}' "event kind mallok is not known: written by a newer heaptape?"
  try '{"kind":"a kind","pid":1,"tid":1}' "a kind of event"
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
  fails_with 1 "contains no events"
}

@test "formats are listed for scripts" {
  heaptape import --list
  [ "$status" -eq 0 ]
  has " ${lines[*]} " " tcmalloc "
  has " ${lines[*]} " " json "
  [[ " ${lines[*]} " != *" ctf "* ]]
  heaptape export --list
  has " ${lines[*]} " " json "
  has " ${lines[*]} " " ctf "
  listed=$(paste -sd '|' <<<"$output")
  heaptape export -F nosuch a.ht
  usage_fails "'nosuch' is not one of $listed"
  heaptape import -F json
  usage_fails "FILE is missing"
}

@test "json: a raw trace comes back, with threads, usable sizes and call sites" {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog
0 1000 malloc size=10 result=4096 usable=24
0 2000 thread.create value=1
0 3000 thread.create value=2
2 4000 thread.start value=0
1 5000 thread.start value=0
2 6000 free ptr=4096 usable=24
1 7000 malloc size=20 result=4096 site=7
1 7500 realloc.begin ptr=4096
1 8000 realloc size=200000 result=8192
2 8500 calloc count=3 size=5 result=4096
1 9000 mark text=here
1 9500 thread.end
0 9600 malloc size=99999999 error=12
0 9700 free ptr=8192
round
end
END
  heaptape export -F json -o a.json a.ht
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  "$HEAPTAPE" dump --format json a.ht | cmp - a.json
  "$HEAPTAPE" import -q --trace -F json -o b.ht a.json
  "$HEAPTAPE" export -F json -o b.json b.ht
  diff <(sed 's/"time_ns":[0-9]*//' a.json) <(sed 's/"time_ns":[0-9]*//' b.json)
  "$HEAPTAPE" convert -q -o a.htw a.ht
  "$HEAPTAPE" import -q -F json -o b.htw a.json
  diff <("$HEAPTAPE" dump --format json a.htw | sed 's/"time_ns":[0-9]*//') \
    <("$HEAPTAPE" dump --format json b.htw | sed 's/"time_ns":[0-9]*//')
}

@test "json: a workload comes back with the stacks of its call sites" {
  cat >a.json <<'END'
{"kind":"heaptape.module","pid":7,"tid":7,"time_ns":1,"ptr":"0x10000","size":4096,"offset":8192,"text":"0123ab /home/me/app"}
{"kind":"heaptape.module","pid":7,"tid":7,"time_ns":1,"ptr":"0x20000","size":4096,"offset":0,"text":" /usr/lib/libnoise.so.1"}
{"kind":"heaptape.stack","pid":7,"tid":7,"time_ns":1,"site":11,"frames":["0x20010","0x10010"]}
{"kind":"heaptape.stack","pid":7,"tid":7,"time_ns":1,"site":12,"frames":["0x20010","0x30020"]}
{"kind":"malloc","pid":7,"tid":7,"time_ns":2,"size":5000,"result":"0xa0000","site":11}
{"kind":"malloc","pid":7,"tid":7,"time_ns":3,"size":1000,"result":"0xb0000","site":12}
{"kind":"malloc","pid":7,"tid":7,"time_ns":4,"size":10,"result":"0xc0000"}
END
  "$HEAPTAPE" import -q -F json -o a.htw a.json
  heaptape export -F json -o b.json a.htw
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "$(grep -c '"kind":"heaptape.stack"' b.json)" -eq 2 ]
  "$HEAPTAPE" import -q -F json -o b.htw b.json
  for options in '--by site --format json' '--by site --format folded'; do
    # shellcheck disable=SC2086
    diff <("$HEAPTAPE" stat -q $options a.htw) <("$HEAPTAPE" stat -q $options b.htw)
  done
  "$HEAPTAPE" stat -q --by site --format json b.htw | grep -q '"0x10010"\|/home/me/app'
  # In a pipe, the stacks come too late.
  cat a.htw | "$HEAPTAPE" export -F json -o c.json - 2>err
  grep -q "call stacks are not written" err
  [ "$(grep -c heaptape.stack c.json)" -eq 0 ]
}

@test "several processes: the one with the highest peak, one by its pid, or all" {
  cat >a.json <<'JSON'
{"kind":"malloc","pid":5,"tid":5,"size":32,"result":"0x1000"}
{"kind":"malloc","pid":6,"tid":6,"size":64,"result":"0x1000"}
{"kind":"free","pid":5,"tid":5,"ptr":"0x1000"}
JSON
  "$HEAPTAPE" import -F json -o most.htw a.json
  heaptape dump most.htw
  [ "${#lines[@]}" -eq 1 ]
  has "$output" "[6 0] +0.000000 malloc(64) = #0"
  "$HEAPTAPE" import -F json --pid 5 -o - a.json | "$HEAPTAPE" dump - >five
  [ "$(wc -l <five)" -eq 2 ]
  has "$(cat five)" "malloc(32)"
  "$HEAPTAPE" import -q -F json --pid all -o each.htw a.json
  cmp each.6.htw most.htw
  heaptape dump each.5.htw
  has "$output" "malloc(32)"
  heaptape import -F json --pid 7 -o none.htw a.json
  fails_with 1 "a.json: " "no events of process 7; it contains processes 5, 6"
  [ ! -e none.htw ]
  heaptape import -F json --pid all - <a.json
  usage_fails "--pid all writes several files"
  heaptape import -F json --pid 5 --trace a.json
  usage_fails "--trace cannot be combined with --pid"
  for option in --strict --no-timestamps; do
    heaptape import -F json $option --trace a.json
    usage_fails "--trace cannot be combined with $option"
  done
}

@test "json: times starting at 0 are times" {
  printf '%s\n' '{"kind":"malloc","time_ns":0,"pid":5,"tid":5,"size":8,"result":"0x1000"}' \
    '{"kind":"free","time_ns":7000,"pid":5,"tid":5,"ptr":"0x1000"}' >a.json
  "$HEAPTAPE" import -q -F json a.json
  [ "$("$HEAPTAPE" dump --format json a.json.htw | jq -c .time_ns | tr '\n' ' ')" = "0 7000 " ]
  # Without times, the workload has none and stays the same otherwise.
  sed 's/"time_ns":[0-9]*,//' a.json >b.json
  "$HEAPTAPE" import -q -F json b.json
  "$HEAPTAPE" dump --format json b.json.htw >c.json
  expect "no times" [ "$(grep -c time_ns c.json)" -eq 0 ]
  "$HEAPTAPE" import -q -F json c.json
  "$HEAPTAPE" dump --format json c.json.htw | cmp - c.json
}

@test "json: the first timestamp is kept" {
  cat >a.json <<'JSON'
{"kind":"malloc","time_ns":5000,"pid":5,"tid":5,"size":8,"result":"0x1000"}
{"kind":"free","time_ns":7000,"pid":5,"tid":5,"ptr":"0x1000"}
JSON
  "$HEAPTAPE" import -q -F json a.json
  "$HEAPTAPE" import -q --trace -F json -o a.ht a.json
  for file in a.json.htw a.ht; do
    [ "$("$HEAPTAPE" export -F json $file 2>/dev/null | jq -c .time_ns | tr '\n' ' ')" = "5000 7000 " ]
  done
}

@test "import: impossibly large sizes are kept, and every command reads them alike" {
  local most=18446744073709551615 format
  {
    printf '1: malloc 0x%x000 %s %d %d\n' 1 $most 1 1 2 112 2 2 3 9223372036854775808 3 3 4 9223372036854775808 4 4
    printf '1: %s 5 5\n' "calloc 0x5000 $most $most"
    printf '1: %s 6 6\n' "realloc 0x6000 0x5000 $most" "free 0x1000"
  } >huge
  "$HEAPTAPE" import -q -F android -o a.htw huge
  "$HEAPTAPE" import -q -F android --trace -o a.ht huge
  "$HEAPTAPE" convert -q -o b.htw a.ht
  "$HEAPTAPE" slice -q -o c.htw --threads 0 a.htw
  "$HEAPTAPE" anonymize -q -o d.htw a.htw
  "$HEAPTAPE" merge -q -o e.htw a.htw b.htw
  for format in json mtrace logalloc; do
    "$HEAPTAPE" export -q -F $format -o $format a.htw
    "$HEAPTAPE" import -q -F $format -o $format.htw $format
  done
  for file in a.ht *.htw; do
    echo "$file"
    "$HEAPTAPE" check -q "$file"
    # The sum saturates.
    [ "$("$HEAPTAPE" stat --json "$file" | jq -r '.requested_bytes | tostring')" = "$(jq -n "$most | tostring" -r)" ]
  done
  heaptape replay -q -r 1 a.htw
  fails_with 1 "a.htw: op 0 of thread 0 requests" "more than any allocator can provide"
}
