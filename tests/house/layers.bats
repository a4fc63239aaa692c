load ../helper

check_layers() {
  run "$HEAPTAPE_SOURCE/tools/check-layers" "$1"
}

# plant FILE LINE: copies the sources and adds LINE to FILE.
plant() {
  mkdir -p copy
  cp -r "$HEAPTAPE_SOURCE/src" "$HEAPTAPE_SOURCE/include" copy/
  echo "$2" >>"copy/$1"
  check_layers copy
}

@test "the sources keep the include rules" {
  check_layers "$HEAPTAPE_SOURCE"
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "a planted include of a sibling is found" {
  plant src/trace/trace.h '#include "workload/workload.h"'
  [ "$status" -eq 1 ]
  [ "${#lines[@]}" -eq 2 ]
  has "${lines[1]}" "1 in both directions ('trace', 'workload')"
  has "$output" "trace may not include workload"
}

@test "a planted include upwards is found" {
  plant src/base/buf.c '#include "trace/event/event.h"'
  [ "$status" -eq 1 ]
  has "$output" "src/base/buf.c"
  has "$output" "base may not include trace"
}

@test "capture includes only headers without malloc, also indirectly" {
  plant src/capture/spool/spool.h '  #  include "base/buf.h"'
  [ "$status" -eq 1 ]
  has "$output" "base/buf.h is not one of the malloc-free headers"
}

@test "no other folder includes capture" {
  plant src/cli/main.c '#include "capture/planted.h"'
  [ "$status" -eq 1 ]
  touch copy/src/capture/planted.h
  check_layers copy
  has "$output" "cli may not include capture"
}

@test "an include without its folder is found" {
  plant src/base/fio.c '#include "buf.h"'
  [ "$status" -eq 1 ]
  has "$output" '"buf.h" is no path from src/'
}

@test "the player does not include the rest of replay, and no library includes the command line" {
  plant src/replay/player/main.c '#include "replay/run.h"'
  [ "$status" -eq 1 ]
  has "$output" "replay/player may not include replay/"
  rm -r copy
  plant src/record/record.c '#include "cli/command.h"'
  [ "$status" -eq 1 ]
  has "$output" "record may not include cli"
}

@test "a part includes only the parts of its row" {
  plant src/record/aggregate/counts.c '#include "record/flight/part.h"'
  [ "$status" -eq 1 ]
  has "$output" "record/aggregate may not include record/flight"
  rm -r copy
  plant src/replay/plan/plan.c '#include "analysis/usage.h"'
  [ "$status" -eq 1 ]
  has "$output" "replay may not include analysis"
}

@test "two parts that include each other are found" {
  plant src/record/processes/limit.h '#include "record/drain/drain.h"'
  [ "$status" -eq 1 ]
  has "$output" "record/processes may not include record/drain"
  has "$output" "1 in both directions ('record/drain', 'record/processes')"
}

@test "a folder that the tables lack is found" {
  mkdir -p copy/src/report/video
  plant src/report/video/video.c '#include "base/buf.h"'
  [ "$status" -eq 1 ]
  has "$output" "report/video is no part of the table"
}

@test "capture does not include record, nor cli commands" {
  plant src/capture/thread.c '#include "record/record.h"'
  [ "$status" -eq 1 ]
  has "$output" "capture may not include record"
  rm -r copy
  plant src/cli/help.c "#include \"commands/$(cd "$HEAPTAPE_SOURCE/src/commands" && printf '%s\n' *.h | head -n 1)\""
  [ "$status" -eq 1 ]
  has "$output" "cli may not include commands"
}

@test "an empty tree is a failure" {
  mkdir empty
  check_layers empty
  [ "$status" -eq 1 ]
}
