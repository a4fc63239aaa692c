load trace

processes() {
  "$HEAPTAPE_PROGRAMS/trace_lines" -p t.ht | wc -l
}

@test "--max-size ends the recording, not the program" {
  skip_under_sanitizer
  record_options='-z none --max-size 1M' record sh -c "'$HEAPTAPE_PROGRAMS/ends' exit 3000000 && echo finished >finished; exit 5"
  [ "$status" -eq 5 ]
  [ "$(cat finished)" = finished ]
  size=$(stat -c %s t.ht)
  # The file may exceed the limit by 20 ms of calls, at 100 million calls per second.
  [ "$size" -ge 1000000 ]
  [ "$size" -le 17000000 ]
  "$HEAPTAPE" check -q t.ht
  read -r _ _ n < <(count_lines | grep malloc)
  [ "$n" -gt 10000 ]
  [ "$n" -lt 3000000 ]
}

@test "--max-size reports the end of the recording" {
  skip_under_sanitizer
  heaptape record -o t.ht --max-size 4K -- "$HEAPTAPE_PROGRAMS/ends" exit 300000
  [ "$status" -eq 0 ]
  has "$stderr" "stopped at --max-size"
}

@test "--follow=all, none, and by name" {
  skip_under_sanitizer
  cp "$(command -v ls)" list-one
  cp "$(command -v ls)" list-two
  cat >children.sh <<'END'
./list-one / >/dev/null
./list-two / >/dev/null
sh -c './list-two / >/dev/null; :'
exit 3
END
  for case in all:5 none:1 'list-*:4' 'list-tw?:3' 'list-[a-o]*:2' 'list-[!a-o]*:3' '*-two:3' 'list:1'; do
    record_options="--follow=${case%:*}" record sh children.sh
    [ "$status" -eq 3 ]
    echo "$case $(processes)"
    [ "$(processes)" -eq "${case##*:}" ]
    "$HEAPTAPE" check -q t.ht
  done
}

@test "--follow=none: the program after exec, but not its fork" {
  skip_under_sanitizer
  record_options=--follow=none record sh -c 'exec sh -c "(ls / >/dev/null; :); exec ls /"'
  [ "$status" -eq 0 ]
  [ "$(processes)" -eq 3 ]
}

@test "--follow=none does not wait for children" {
  skip_under_sanitizer
  record_options=--follow=none record sh -c 'sleep 110 >/dev/null 2>&1 & echo $! >pid'
  kill "$(cat pid)"
  [ "$status" -eq 0 ]
}

@test "--follow: usage" {
  heaptape record --follow= -- ls
  usage_fails "--follow must be"
}

@test "a process with few events has a spool of few pages" {
  skip_under_sanitizer
  record sh -c 'stat -c "%b %B" "$HEAPTAPE_SPOOL"/$$-0.spool >spool'
  [ "$status" -eq 0 ]
  read -r blocks bytes <spool
  [ $((blocks * bytes)) -ge 8192 ]
  [ $((blocks * bytes)) -le 49152 ]
}
