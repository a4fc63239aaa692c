load ../helper

# Runs every command in the second column of the tables of docs/guide/from-other-tools.md, in order.

# The commands, one per line.
commands() {
  python3 - "$HEAPTAPE_SOURCE/docs/guide/from-other-tools.md" <<'PY'
import re, sys

for line in open(sys.argv[1], encoding="utf-8"):
    cells = re.split(r"(?<!\\)\|", line.strip())
    if len(cells) != 5 or "---" in cells[1]:
        continue
    here = cells[2].replace("\\|", "|")
    for command in here.split("<br>"):
        quoted = re.fullmatch(r"\s*`([^`]+)`\s*", command)
        if quoted:
            print(quoted.group(1))
        elif command.strip() not in ("", "here", "the same", "as above"):
            sys.exit(f"no command: {command}")
PY
}

# Creates the files that users of the other tools have.
their_files() {
  local foreign=$HEAPTAPE_SOURCE/tests/foreign
  mkdir bin
  ln -s "$HEAPTAPE" bin/heaptape
  printf '#!/bin/sh\nls / >/dev/null\nls -l / >/dev/null\nls -a\n' >bin/firefox
  chmod +x bin/firefox
  PATH=$PWD/bin:$PATH
  printf '#!/bin/sh\nls / >/dev/null\n' >your-program
  chmod +x your-program
  cp "$foreign/api.mtrace" mtrace-22172.out
  cp "$foreign/synth2x.wl" workload.wl
  cp "$foreign/three.lz4" raw-trace-file.lz4
  cp "$foreign/small.heaptrack.zst" heaptrack.your-program.1.zst
  cp "$HEAPTAPE_SOURCE/include/heaptape/heaptape.h" .
  printf '7: malloc 0x10 100\n7: calloc 0x20 2 8\n8: free 0x10\n' >surfaceflinger.txt
  zip -q surfaceflinger.zip surfaceflinger.txt
}

# run_one COMMAND: runs the document's command in this directory, with this build.
run_one() {
  local command=${1//\/tmp\//$PWD/tmp/} folder=$PWD
  case $command in
    tools/* | meson* | ninja*)
      command=${command//-C build/-C "$HEAPTAPE_BUILD"}
      command=${command/setup build/setup "$HEAPTAPE_BUILD"}
      folder=$HEAPTAPE_SOURCE
      ;;
  esac
  (cd "$folder" && DESTDIR=$OLDPWD/installed bash -o pipefail -c "$command") >out 2>err
}

@test "from other tools: each command line has an equivalent that runs" {
  skip_under_sanitizer
  for tool in zip unzip lz4 gzip awk; do
    command -v $tool >/dev/null || skip "$tool is not installed"
  done
  their_files
  mkdir tmp
  : >before
  commands >list
  expect "the tables" [ "$(wc -l <list)" -gt 50 ]
  failed=0
  while read -r command; do
    run_one "$command" </dev/null && continue
    echo "failed: $command"
    cat out err
    failed=1
  done <list
  # The default name is the only file outside this directory. Other tests may write such files
  # concurrently; live.bats holds the lock while it needs one.
  sleep 2
  flock "$HEAPTAPE_BUILD/mtrace.lock" find /tmp -maxdepth 1 -name 'mtrace.out.*' -newer before ! -newermt '-1 second' -delete
  [ $failed -eq 0 ]
  expect "munged" grep -q '^1 1 malloc(' munged
  expect "recorded" [ -s ls.ht ]
  cmp <(unzip -p surfaceflinger.zip | cut -d: -f2 | cut -d' ' -f2) <(cut -d: -f2 again.txt | cut -d' ' -f2)
}

@test "from other tools: the tables have every command line of the tools' documents" {
  doc=$HEAPTAPE_SOURCE/docs/guide/from-other-tools.md
  for words in 'LD_PRELOAD=/lib64/libmtracectl.so ls' 'ls -l /tmp/mtrace-' 'gzip -9 mtrace.out.1188' \
    'mv mtrace.out.1188.gz f24-ls-fred.mtrace.gz' 'trace2wl outfile' 'trace2wl /tmp/ls.wl /tmp/mtrace-22172.out' \
    'trace_run workload.wl' 'trace_run /tmp/ls.wl' 'grep rdtscp /proc/cpuinfo' 'gcc -o trace2wl trace2wl.c' MTRACE_CTL_FILE \
    'dnf copr enable' 'dnf clean all' 'yum update' 'init 6' 'rpm -qa' 'dnf --allowerasing downgrade glibc' 'git clone' \
    mtrace_init mtrace_start mtrace_stop mtrace_pause mtrace_unpause mtrace_sync mtrace_reset M_MMAP_THRESHOLD malloc_trim \
    './autogen && ./configure' TCMALLOC_TRACE_OUTPUT './postprocess raw-trace-file.lz4' 'dd if=processed-trace.lz4' \
    NO_THREAD_CACHE_SWITCH 'MALLOC_LOG=/path/to/log-file' 'MALLOC_LOG=number' 'MALLOC_LOG=1' 'MALLOC_LOG=2' \
    'MALLOC_LOG=3 firefox 3>&1 1>&2' logalloc_munge.py './logalloc-replay' 'LD_PRELOAD=libreplace_jemalloc.so logalloc-replay'; do
    grep -qF -- "$words" "$doc" || { echo "not in the document: $words" && false; }
  done
}
