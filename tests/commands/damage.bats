# Flips every bit of a small file and truncates the file at every length.
load ../helper

small_trace() {
  "$HEAPTAPE_PROGRAMS/make_trace" a.ht <<'END'
process 100 prog -x
0 1000 malloc size=32 result=0x1000
0 1100 calloc size=8 count=3 result=0x1100
0 2000 thread.create value=1
1 2500 thread.start value=0 text=worker
1 3000 malloc size=48 result=0x2000
0 3500 mark text=warm
1 4000 free ptr=0x1000
round
0 5000 realloc.begin ptr=0x2000
0 5100 realloc size=96 result=0x3000
0 6000 free ptr=0x3000
1 7000 thread.end
end
END
  "$HEAPTAPE" convert -q -o a.htw a.ht
}

@test "damage: every bit of a trace and of a workload, and every length" {
  small_trace
  for file in a.ht a.htw; do
    run "$HEAPTAPE_PROGRAMS/damage" $file
    echo "$output"
    [ "$status" -eq 0 ]
    # A checksum covers the whole file.
    has "$output" "refused, 0 the same"
  done
}

@test "damage: commands fail with one line and status 1" {
  small_trace
  python3 - <<'END'
import os
for name in "a.ht", "a.htw":
    data = open(name, "rb").read()
    for i, at in enumerate(range(0, len(data), len(data) // 6)):
        bad = bytearray(data)
        bad[at] ^= 1 << at % 8
        open(f"flip{i}.{name}", "wb").write(bad)
        open(f"cut{i}.{name}", "wb").write(data[:at])
END
  for file in flip*.ht flip*.htw cut*.htw; do
    for command in stat dump "slice -o out.htw" "replay -q -r 1" "merge -o out.htw a.htw" "convert -o out.htw"; do
      case $command-$file in convert*.htw) continue ;; esac
      heaptape $command $file
      # stat counts the complete part of a truncated workload and reports the truncation.
      [ "$command-${file#cut*.}-$status" = stat-a.htw-0 ] && has "$stderr" "cut off" && continue
      expect "$command $file" [ "$status" -eq 1 ]
      expect "$command $file: one line" [ "${#stderr_lines[@]}" -eq 1 ]
      has "$stderr" "$file: "
      [ ! -e out.htw ]
    done
  done
}
