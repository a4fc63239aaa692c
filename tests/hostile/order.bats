load hostile

setup_file() {
  export PATH=$HEAPTAPE_PROGRAMS/hostile:$PATH
}

@test "reallocs of large blocks across threads: every format has them in order" {
  skip_under_sanitizer
  times=${HEAPTAPE_TEST_TIMES:-3}
  for ((turn = 0; turn < times; turn++)); do # `run` sets i
    records mre
    for format in android logalloc logalloc-munged mtrace; do
      timeout -k 1 120 "$HEAPTAPE" export -f -F $format -o exported t.ht 2>said
      timeout -k 1 120 "$HEAPTAPE" record -f -F $format -o live -- mre 2>>said
      expect "no line added or dropped" [ -z "$(grep -E 'added|never allocated' said)" ]
      for file in exported live; do
        echo "$format $file"
        [ "$(python3 "$BATS_TEST_DIRNAME/address_order.py" $format $file)" -eq 0 ]
      done
    done
  done
}
