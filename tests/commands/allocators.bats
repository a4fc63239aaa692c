load ../helper

@test "glibc is listed, and missing allocators are named as missing" {
  heaptape allocators
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [[ ${lines[0]} =~ ^glibc\ +2\.[0-9]+\ +/.*libc ]]
  [ "${#lines[@]}" -eq 6 ]
}

@test "--json" {
  "$HEAPTAPE" allocators --json >out.json
  python3 - <<'END'
import json, os
d = json.load(open("out.json"))
assert d["schema_version"] == 2
names = [a["name"] for a in d["allocators"]]
assert names == ["glibc", "jemalloc", "tcmalloc", "mimalloc", "tbb", "scudo"]
for a in d["allocators"]:
    if a["available"]:
        assert os.path.exists(a["library"]), a
    else:
        assert a["reason"] and a["library"] is None, a
assert d["allocators"][0]["available"] and d["allocators"][0]["version"]
END
}

@test "operands are refused" {
  heaptape allocators x
  usage_fails "unexpected operand"
}
