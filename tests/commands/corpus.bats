# Recording a corpus, its index, and comparing allocators on it. Programs that are not installed are
# skipped.
load ../helper

# index ENTRIES: prints a valid document.
index() {
  printf '{"schema_version": 2, "entries": [%s]}\n' "$1"
}

# small NAME: creates a corpus in c with one workload and the entry of sqlite from heaptape's index.
small() {
  mkdir -p c
  "$HEAPTAPE_PROGRAMS/make_workload" "c/$1.htw" churn 1 2000 >/dev/null
  jq --arg name "$1" '.entries |= (map(select(.name == "sqlite")) | map(.name = $name))' \
    "$HEAPTAPE_SOURCE/corpus/index.json" >c/index.json
}

@test "corpus list: the index that comes with heaptape, as a table and as JSON" {
  heaptape corpus list
  expect "status 0" [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 41 ]
  grep -Eq '^java +java +[0-9]' <<<"$output"
  [[ "${lines[1]}" =~ ^cc1\ +gcc-12\ +[0-9] ]]
  heaptape corpus list --json
  expect "status 0" [ "$status" -eq 0 ]
  diff <(printf '%s\n' "$output") "$HEAPTAPE_SOURCE/corpus/index.json"
  [ "$(jq -r '.entries[].name' <<<"$output" | xargs)" = "cc1 clang erlang ffmpeg git gromacs gs haproxy java libreoffice lld mariadb memcached mono named nginx node numpy octave pandoc perl php postgres python r racket redis rocksdb ruby rustc slapd sqlite stockfish tesseract vips wkhtmltopdf x265 yosys z3 zstd" ]
  heaptape corpus list --json perl git
  [ "$(jq -r '.entries[].name' <<<"$output" | xargs)" = "git perl" ]
  find "$HEAPTAPE_SOURCE/corpus" -name '*.sh' -printf '%f\n' | sort >scripts
  diff scripts <(jq -r '.entries[].name + ".sh"' "$HEAPTAPE_SOURCE/corpus/index.json" | sort)
  # A program that was not recorded.
  mkdir c
  jq '.entries |= map(select(.name == "java") | map_values(null) + {name, program, licence, machine: (.machine | map_values(null))})' \
    "$HEAPTAPE_SOURCE/corpus/index.json" >c/index.json
  heaptape corpus list -d c
  grep -Eq '^java +java +-( +-){6}$' <<<"$output"
  # The index has the program and the licence of each recipe.
  jq -r '.entries[] | "\(.name) \(.program) \(.licence)"' "$HEAPTAPE_SOURCE/corpus/index.json" >entries
  while read -r name program licence; do
    expect "$name" sh -euc '. "$1/recipe"; . "$1/$2.sh"; [ "${programs%% *}" = "$3" ] || [ "$(basename "$(command -v "${programs%% *}")")" = "$3" ] && [ "$licence" = "$4" ]' - \
      "$HEAPTAPE_SOURCE/corpus" "$name" "$program" "$licence"
  done <entries
}

@test "corpus record: writes workloads without names, with their entries" {
  skip_under_sanitizer
  for program in perl sqlite3; do command -v $program >/dev/null || skip "no $program"; done
  heaptape corpus record -d "a corpus" --size 2 perl sqlite
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "2 recorded, 0 skipped, 0 failed"
  [ "$(find "a corpus" -type f -printf '%f\n' | sort | xargs)" = "index.json perl.htw sqlite.htw" ]
  cp "a corpus/index.json" first
  [ "$(jq -r '.entries[1].sha256' first)" = "$(sha256sum <"a corpus/sqlite.htw" | cut -d ' ' -f 1)" ]
  [ "$(jq '.entries[1].events' first)" -eq "$("$HEAPTAPE" stat --json "a corpus/sqlite.htw" | jq .events)" ]
  [ "$(jq -c '.entries[0] | [.program, .size_percent, .threads]' first)" = '["perl",2,1]' ]
  [ "$("$HEAPTAPE" stat --json "a corpus/perl.htw" | jq -c '.processes[0].argv')" = '["program"]' ]
  heaptape corpus list -d "a corpus" --json
  diff <(printf '%s\n' "$output") first
  heaptape corpus record -q -d "a corpus" --size 1 perl
  expect "status 0" [ "$status" -eq 0 ]
  [ "$(jq -c '.entries[0].size_percent' "a corpus/index.json")" = 1 ]
  [ "$(jq -c '.entries[1]' "a corpus/index.json")" = "$(jq -c '.entries[1]' first)" ]
}

# perl and sqlite are tested above.
@test "corpus record: a runtime, an archiver with threads, a server, a linker and a solver" {
  skip_under_sanitizer
  for program in php zstd memcached ld.lld-14 z3; do command -v $program >/dev/null || skip "no $program"; done
  mkdir c
  heaptape corpus record -q -d c --size 2 php zstd memcached lld z3
  expect "status 0" [ "$status" -eq 0 ]
  [ "$(jq -r '.entries[].name' c/index.json | xargs)" = "lld memcached php z3 zstd" ]
  [ "$(jq '[.entries[] | .events > 100 and .size_percent == 2 and .threads > 0] | all' c/index.json)" = true ]
  [ "$(jq '.entries[] | select(.name == "zstd" or .name == "memcached") | .threads > 1' c/index.json | xargs)" = "true true" ]
}

@test "corpus record: a missing program is skipped, a failing one is reported" {
  mkdir -p bin data
  cp "$HEAPTAPE_SOURCE"/corpus/{driver,recipe} data
  printf 'programs="no-such-program"; packages="a b"; licence=MIT\n' >data/missing.sh
  printf 'programs="sh"; packages="sh"; licence=MIT\nrun() { echo first; echo last words; false; echo not here; }\n' >data/fails.sh
  run data/driver "$HEAPTAPE" missing "$PWD" 100 0
  [ "$status" -eq 3 ]
  [ "$output" = "no-such-program is not installed (apt-get install a b)" ]
  run data/driver "$HEAPTAPE" fails "$PWD" 100 0
  [ "$status" -eq 1 ]
  [ "$output" = "last words" ]
  [ ! -e fails.htw ]
}

@test "corpus record: a recipe changes only its directory and reaches only this machine" {
  skip_under_sanitizer
  [ "$(id -u)" -eq 0 ] && unshare -mn sh -c 'mount -t tmpfs tmpfs /run && mkdir /run/a /run/b &&
    mount -t overlay -o lowerdir=/tmp,upperdir=/run/a,workdir=/run/b overlay /tmp' ||
    skip "needs namespaces and overlay file systems"
  mkdir data
  cp "$HEAPTAPE_SOURCE"/corpus/{driver,recipe} data
  cat >data/tries.sh <<'END'
programs="true"; packages="coreutils"; licence=MIT
run() {
  echo home >"$HOME/made"
  touch "$outside/made" || true
  touch /made && return 1
  [ -z "${DISPLAY-}$(cat /proc/net/route | sed 1d)" ] || return 1
  perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die;
    IO::Socket::INET->new("127.0.0.1:" . $s->sockport) or die' || return 1
  echo tried >"$result/tried"
  record sort /etc/passwd
}
END
  mkdir outside result
  export outside=$PWD/outside result=$PWD/result DISPLAY=:0 HOME=$PWD/outside
  run data/driver "$HEAPTAPE" tries "$PWD/result" 100 0
  echo "$output"
  [ "$status" -eq 0 ]
  [ -e result/tried ] && [ -e result/tries.htw ]
  [ -z "$(ls outside)" ]
}

@test "corpus run: a table and a page, and finished runs are not repeated" {
  small libreoffice # 11 letters, the longest name of the index
  local words=(corpus run -d c -r 5 -a glibc -a "glibc,MALLOC_ARENA_MAX=1")
  heaptape "${words[@]}"
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "job 10: 10 of 10"
  [ "${#lines[@]}" -eq 3 ]
  [[ "${lines[0]}" =~ ^workload\ +glibc\ +glibc,MALLOC_ARENA ]]
  [[ "${lines[1]}" =~ ^libreoffice\ wall\ time\ +[0-9.]+\ .s\ +(no difference|[0-9.]+ \[.*\]) ]]
  [[ "${lines[2]}" =~ ^\ +peak\ RSS\ +[0-9.]+\ .iB\ +(no difference|[0-9.]+ \[.*\]) ]]
  grep -qi "<!doctype html>" c/results/index.html
  local table=$output
  rm c/results/4.json
  heaptape "${words[@]}"
  expect "status 0" [ "$status" -eq 0 ]
  has "$stderr" "job 4: 1 of 1"
  sha256sum c/results/*.json >before
  heaptape "${words[@]}"
  [ "$(wc -l <<<"$table")" -eq "${#lines[@]}" ]
  sha256sum -c --quiet before
  heaptape corpus run -d c -r 2 -a glibc
  expect "status 1" [ "$status" -eq 1 ]
  has "$stderr" "has other jobs"
  heaptape corpus run -d c -r 1 -a glibc -a ./none.so --results other libreoffice
  expect "status 1" [ "$status" -eq 1 ]
  [[ "${lines[1]}" =~ ^libreoffice\ wall\ time\ +[0-9.]+\ .s\ +-$ ]]
}

# stored: makes c/results from one real result. The results are of 20 workloads with 8 runs each, on
# three settings: an allocator, the same allocator under another name, and a setting that needs 30 %
# more memory.
stored() {
  mkdir c
  "$HEAPTAPE_PROGRAMS/make_workload" c/w10.htw churn 1 2000 >/dev/null
  python3 - "$HEAPTAPE_SOURCE" <<'END'
import json, shutil, sys
index = json.load(open(sys.argv[1] + "/corpus/index.json"))
index["entries"] = [dict(index["entries"][0], name=f"w{n}") for n in range(10, 30)]
json.dump(index, open("c/index.json", "w"))
for n in range(11, 30):
    shutil.copy("c/w10.htw", f"c/w{n}.htw")
END
  "$HEAPTAPE" corpus run -q -d c -r 1 -a glibc --results one w10 >/dev/null
  python3 - <<'END'
import json, os, random
random.seed(45)
names = ["glibc", "glibc,LABEL=b", "glibc,MALLOC_ARENA_MAX=1"]
lines = [line for line in open("one/jobs").read().splitlines() if not line.startswith("job\t")]
os.mkdir("c/results")
one, number = json.load(open("one/1.json")), 0
for run in range(8):
    for workload in range(10, 30):
        for name in names:
            lines.append("job\t%s\t%s" % (os.path.realpath(f"c/w{workload}.htw"), name))
            number += 1
            wall = int(1e6 * random.uniform(1, 1.1) * (1.5 if random.random() < 0.1 else 1))
            rss = int((1 << 24) * (1.3 if "ARENA" in name else 1)) + 4096 * random.randrange(40)
            one["allocator"].update(name="glibc", tunables=name.split(",")[1:])
            one["runs"] = [dict(one["runs"][0], wall_ns=wall, peak_rss_bytes=rss)]
            one.update(wall_ns=wall, peak_rss_bytes=rss)
            json.dump(one, open(f"c/results/{number}.json", "w"))
open("c/results/jobs", "w").write("\n".join(lines) + "\n")
END
}

@test "corpus run: stored results of an allocator and itself have no sure difference, those of two settings have" {
  stored
  heaptape corpus run -d c -r 8 -a glibc -a glibc,LABEL=b -a glibc,MALLOC_ARENA_MAX=1
  expect "status 0" [ "$status" -eq 0 ]
  [ "$(grep -c "^w[0-9]* *wall time" <<<"$output")" -eq 20 ]
  # The columns are the median, the ratio of LABEL=b, and the ratio of MALLOC_ARENA_MAX=1.
  [ "$(grep -c "peak RSS .*no difference  *1.30 \[1.[23][0-9], 1.3[0-9]\]\*" <<<"$output")" -eq 20 ]
  [[ "$(grep "wall time" <<<"$output")" != *"*"* ]]
  has "$output" "* marks differences that are significant among all
40 comparisons of a figure, which takes at least 7 runs."
  [[ "$(grep -A 1 "^mean  *wall time" <<<"$output" | tail -n 1)" =~ peak\ RSS\ +1\ +1.00\ +1.30$ ]]
  [[ "$(grep -A 1 "^worst  *wall time" <<<"$output" | tail -n 1)" =~ peak\ RSS\ +(no difference|1.0[0-9] w[0-9]+)\ +1.3[0-9]\ w[0-9]+$ ]]
}

@test "corpus run: --against prints what is significantly different from an earlier run" {
  stored
  local words=(corpus run -d c -r 8 -a glibc -a glibc,LABEL=b -a glibc,MALLOC_ARENA_MAX=1 --against earlier)
  cp -r c/results earlier
  heaptape "${words[@]}"
  expect "status 0" [ "$status" -eq 0 ]
  has "$output" "Since earlier: 0 figures are significantly worse, 0 better (among 60 comparisons of a figure)."
  # changed WORKLOAD FACTOR: the peaks of the workload on glibc in the earlier run.
  changed() {
    grep -n $'^job\t' earlier/jobs | grep -n "/$1.htw"$'\tglibc$' | cut -d : -f 1 | while read -r number; do
      jq -c --argjson by "$2" '.runs[0].peak_rss_bytes *= $by | .peak_rss_bytes *= $by' "c/results/$number.json" >"earlier/$number.json"
    done
  }
  changed w12 0.5
  heaptape "${words[@]}"
  expect "a worse figure" [ "$status" -eq 1 ]
  [ "$(grep -c " -> " <<<"$output")" -eq 1 ]
  [[ "$(grep " -> " <<<"$output")" =~ ^w12\ +peak\ RSS\ +glibc\ +8.[0-9]\ MiB\ -\>\ 16.[0-9]\ MiB\ \ 2.00\ \[ ]]
  changed w12 0
  heaptape "${words[@]}"
  expect "no ratio to 0" [ "$status" -eq 0 ]
  [ "$(grep -c " -> " <<<"$output")" -eq 0 ]
  changed w12 1
  changed w13 2
  heaptape "${words[@]}"
  expect "a better figure" [ "$status" -eq 0 ]
  [[ "$(grep " -> " <<<"$output")" =~ ^w13\ .*\ 0.50\ \[ ]]
  has "$output" "Since earlier: 0 figures are significantly worse, 1 better"
  mkdir none
  heaptape "${words[@]:0:${#words[@]}-1}" none
  fails_with 1 "none/jobs: No such file"
  # Fewer runs cannot show a change; another workload cannot be compared.
  rm earlier/{361..480}.json
  heaptape "${words[@]}"
  has "$output" "6 runs cannot show a significant change since earlier among 60 comparisons"
  changed w13 1
  jq -c '.events += 1' earlier/1.json >other
  cp other earlier/1.json
  heaptape "${words[@]}"
  fails_with 1 "made from another workload"
}

@test "corpus: usage, invalid names, and damaged indexes" {
  heaptape corpus
  usage_fails "an operand is missing"
  heaptape corpus rn
  usage_fails "unknown verb 'rn'; did you mean 'run'?"
  heaptape corpus record
  usage_fails "--dir is missing"
  heaptape corpus run perl
  usage_fails "--dir is missing"
  heaptape corpus list nothing
  fails_with 1 "index.json: contains no workload 'nothing'"
  heaptape corpus record -d c nothing
  fails_with 1 "'nothing' is not a program of the corpus"
  [ ! -e c ]
  heaptape corpus list -d c
  fails_with 1 "c/index.json: No such file"
  heaptape corpus run -d c
  fails_with 1 "c/index.json: No such file"
  heaptape corpus record -d c/d perl
  fails_with 1 "c/d: No such file"
  mkdir c
  index '' >c/index.json
  heaptape corpus run -d c
  fails_with 1 "c/index.json: contains no workload"
  index '{}' >c/index.json
  heaptape corpus list -d c
  fails_with 1 "c/index.json: is not an index of a corpus: entry 1 has no valid 'name'"
  index '{"name": "../x"' >c/index.json
  heaptape corpus list -d c
  fails_with 1 "c/index.json: invalid JSON at byte 49"
  rm c/index.json && mkfifo c/index.json
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" corpus list -d c
  fails_with 1 "c/index.json: is not a regular file"
  rm c/index.json && ln -s /dev/zero c/index.json
  run --separate-stderr timeout -k 1 120 "$HEAPTAPE" corpus list -d c
  fails_with 1 "c/index.json: is not a regular file"
  rm c/index.json
  echo '[]' >c/index.json
  heaptape corpus list -d c
  fails_with 1 "c/index.json: is not an index of a corpus, at byte 0"
  small one
  jq '.entries[0].name = "../one"' c/index.json >bad
  cp bad c/index.json
  heaptape corpus run -d c
  fails_with 1 "entry 1 has no valid 'name'"
  small one
  truncate -s -20 c/index.json
  heaptape corpus record -d c perl
  fails_with 1 "c/index.json: truncated JSON at byte $(stat -c %s c/index.json)"
}
