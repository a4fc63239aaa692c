# Compares functions, inlined functions and lines of addresses with llvm-symbolizer.

load ../helper
load ../capture/trace

# build_program COMPILER [OPTION...]: builds inlined.cc in the current directory, and runs
# llvm-symbolizer on its calls. Instead of a compiler, server_program copies a larger program, which
# has templates of the C++ library.
build_program() {
  if [ "$1" = server_program ]; then
    server_program prog
  else
    "$@" -std=c++17 -O2 -g -o prog "$HEAPTAPE_SOURCE/tests/commands/inlined.cc"
  fi
  objdump -d --no-show-raw-insn prog | awk '/call/ { getline; if ($1 ~ /:$/) print substr($1, 1, length($1) - 1) }' >addresses
  # The address of a call is before its return address.
  python3 -c 'for line in open("addresses"): print(hex(int(line, 16) - 1))' |
    llvm-symbolizer --inlines -e prog --output-style=JSON >theirs
}

# compare COMPILER [OPTION...]: builds the program, and compares the names of all return addresses.
# All builds of heaptape in ./check share the program through $HEAPTAPE_TEST_SHARED.
compare() {
  command -v llvm-symbolizer >/dev/null || skip "no llvm-symbolizer"
  command -v "$1" >/dev/null || skip "no $1"
  local folder=${HEAPTAPE_TEST_SHARED:-$BATS_TEST_TMPDIR}/inlined.$*
  mkdir -p "$folder"
  cd "$folder" || return
  [ -e built ] || build_program "$@"
  touch built
  "$HEAPTAPE_PROGRAMS/name_addresses" prog <addresses >ours
  python3 - <<'END'
import json
addresses = open("addresses").read().split()
ours = [[line.split("\t") for line in one.split("\n")] for one in open("ours").read().split("\n\n")[:-1]]
theirs = [json.loads(line)["Symbol"] for line in open("theirs")]
assert len(addresses) == len(ours) == len(theirs) > 200, (len(addresses), len(ours), len(theirs))
inlined = 0
for address, we, they in zip(addresses, ours, theirs):
    if not they[0]["FunctionName"]:
        continue
    inlined += len(they) > 1
    assert len(we) == len(they), (address, we, they)
    for (function, place), f in zip(we, they):
        file, line = place.rsplit(":", 1)
        assert int(line) == f["Line"], (address, we, they)
        assert not f["Line"] or file.split("/")[-1] == f["FileName"].split("/")[-1], (address, place, f)
assert inlined > 100, inlined
END
}

@test "inlined functions: of gcc, DWARF 5" {
  compare g++
}

@test "inlined functions: of gcc, in templates of the C++ library" {
  compare server_program
  cp prog addresses "$BATS_FILE_TMPDIR"
}

@test "inlined functions: of gcc, DWARF 4" {
  compare g++ -gdwarf-4
}

@test "inlined functions: of gcc with link-time optimization" {
  compare g++ -flto
}

@test "inlined functions: of gcc with split DWARF" {
  compare g++ -gsplit-dwarf
}

@test "inlined functions: of clang, without .debug_aranges" {
  compare clang++
}

@test "inlined functions: of clang with split DWARF, and DWARF 4" {
  compare clang++ -gsplit-dwarf
  compare clang++ -gdwarf-4
}

@test "inlined functions: damaged debugging information does not cause a loop" {
  # Use the files of the test of the C++ library if it has run.
  cp "$BATS_FILE_TMPDIR"/{prog,addresses} . 2>/dev/null || compare server_program
  cat >damage.py <<'END'
import random, subprocess, sys
sections = []
for line in subprocess.run(["readelf", "-SW", "prog"], capture_output=True, text=True).stdout.splitlines():
    if ".debug_" in line:
        fields = line.split("]", 1)[1].split()
        sections.append((int(fields[3], 16), int(fields[4], 16)))
assert len(sections) > 5
whole, addresses = open("prog", "rb").read(), open("addresses").read()
for seed in range(40):
    dice, damaged = random.Random(seed), bytearray(whole)
    for _ in range(dice.choice([1, 5, 50, 1000])):
        start, size = dice.choice(sections)
        damaged[start + dice.randrange(size)] = dice.randrange(256)
    open("damaged", "wb").write(damaged)
    done = subprocess.run([sys.argv[1], "damaged"], input=addresses, capture_output=True, text=True, errors="replace", timeout=300)
    assert done.returncode == 0, (seed, done)
    assert done.stdout.count("\n\n") >= addresses.count("\n"), seed
END
  python3 damage.py "$HEAPTAPE_PROGRAMS/name_addresses"
}
