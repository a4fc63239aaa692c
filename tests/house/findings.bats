load ../helper

# missing FILE: the missing tests of the sentences in the table FILE.
missing() {
  python3 - "$1" "$HEAPTAPE_SOURCE/tests/commands/findings.bats" <<'END'
import re, sys
table, tests = (open(path).read() for path in sys.argv[1:])
names = re.findall(r'^    X\((\w+), (?:true|false), ', table, re.M)
assert len(names) > 20 and len(names) == len(re.findall(r'^    X\(', table, re.M)), names
for name in names:
    for case, check in ('yes', 'said'), ('no', 'unsaid'):
        body = re.search(rf'^@test "{name}: {case}" {{$(.*?)^}}$', tests, re.M | re.S)
        if not body or not re.search(rf'^ *{check} {name}\b', body.group(1), re.M):
            print(f'{name}: {case}')
END
}

@test "each sentence of a finding has a test with the finding, and a test without" {
  run missing "$HEAPTAPE_SOURCE/src/report/findings.h"
  echo "$output"
  [ "$status" -eq 0 ]
  [ -z "$output" ]
}

# The compiler finds a missing case: tests/unit/test_report_verdict.c has a function for each.
@test "each verdict has facts for which it applies, and facts for which it does not" {
  local name
  sed -n 's/^    X(\(\w*\), \(true\|false\), .*/\1/p' "$HEAPTAPE_SOURCE/src/report/verdict.h" >names
  [ "$(wc -l <names)" -gt 10 ]
  while read -r name; do
    grep -q "^static const char \*yes_$name(" "$HEAPTAPE_SOURCE/tests/unit/test_report_verdict.c"
    grep -q "^static void no_$name(" "$HEAPTAPE_SOURCE/tests/unit/test_report_verdict.c"
  done <names
}

@test "a planted sentence without tests is found" {
  sed 's/^    X(peak, false, /    X(planted, true, "never") \\\n&/' "$HEAPTAPE_SOURCE/src/report/findings.h" >table.h
  run missing table.h
  [ "$output" = "planted: yes
planted: no" ]
}
