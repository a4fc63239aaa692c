load ../helper

@test "the generated files are up to date" {
  run "$HEAPTAPE_SOURCE/tools/generate" --check "$HEAPTAPE"
  echo "$output"
  [ "$status" -eq 0 ]
}

@test "a planted stale file is found" {
  mkdir -p copy/src/player
  cp -r "$HEAPTAPE_SOURCE"/{tools,docs,src} copy/
  cp "$HEAPTAPE_SOURCE/src/replay/player/figures_table.h" copy/src/replay/player/
  sed -i 's/Show this help/Planted/' copy/docs/man/heaptape.1.scd
  run copy/tools/generate --check "$HEAPTAPE"
  [ "$status" -eq 1 ]
  has "$output" "docs/man/heaptape.1.scd is stale"
  run copy/tools/generate "$HEAPTAPE"
  [ "$status" -eq 0 ]
  cmp copy/docs/man/heaptape.1.scd "$HEAPTAPE_SOURCE/docs/man/heaptape.1.scd"
}

@test "every command has a man page, and the build installs it" {
  command -v scdoc >/dev/null || skip "no scdoc"
  "$HEAPTAPE" help --man | sed -n 's/^\*\(heaptape-[a-z]*\)\*.*/\1/p' >commands
  for page in heaptape $(cat commands); do
    echo "$page"
    [ -f "$HEAPTAPE_BUILD/docs/$page.1" ]
    scdoc <"$HEAPTAPE_SOURCE/docs/man/$page.1.scd" >page.1
    grep -q EXIT page.1 || [ "$page" != heaptape ]
  done
}

@test "every foreign format has a section and, if it is read, a seed of the fuzzer" {
  local table='s/^ *X([a-z_]*, "\([a-z-]*\)", \([A-Z]*\),.*/\1 \2/p' name direction
  sed -n "$table" "$HEAPTAPE_SOURCE/src/formats/formats_table.h" >formats
  [ "$(wc -l <formats)" -ge 14 ]
  head -qn 1 "$HEAPTAPE_SOURCE"/tests/fuzz/corpus/import/* | tr -d '\0' | sed 's/ .*//' | sort -u >seeds
  while read -r name direction; do
    echo "$name"
    grep -qE "^## $name(:|$)" "$HEAPTAPE_SOURCE/docs/reference/foreign-formats.md"
    [ "$direction" = EXPORT ] || grep -qax "$name" seeds
  done <formats
}

@test "prose fits into 100 columns, and links have targets" {
  run "$HEAPTAPE_SOURCE/tools/check-docs" "$HEAPTAPE_SOURCE"
  echo "$output"
  [ "$status" -eq 0 ]
}

# The option --help ends the parsing of a command, after the values of the options before it were
# checked.
@test "the commands in the documentation have valid options" {
  python3 - "$HEAPTAPE_BUILD/heaptape" "$HEAPTAPE_SOURCE" <<'END'
import glob, re, shlex, subprocess, sys
program, root = sys.argv[1:]
count, bad = 0, []
for path in [root + "/README.md", *glob.glob(root + "/docs/**/*.md", recursive=True)]:
    text = open(path, encoding="utf-8").read().replace("\\\n", " ")
    for line in re.findall(r"^(?:    |\$ )+heaptape ([a-z_]+ .*)", text, re.M):
        if re.search(r"[\[…<]|^help", line):
            continue  # a synopsis, or the output of a command
        line = re.sub(r"\$\([^)]*\)|\$\w+|\bPID\b", "1", line)
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue  # a quotation of several lines
        ends = [i for i, word in enumerate(words) if re.match(r"[|&>]|2>|.*;$", word)]
        words = words[:ends[0]] if ends else words
        at = words.index("--") if "--" in words else len(words)
        ran = subprocess.run([program, *words[:at], "--help", *words[at:]], capture_output=True, text=True)
        count += 1
        if ran.returncode:
            bad.append(f"{path}: heaptape {line}: {ran.stderr}")
print(count, *bad, sep="\n")
sys.exit(bool(bad) or count < 90)
END
}

# Words of a message that the source does not contain as one piece begin with a counted noun.
@test "the messages in the documentation are those of the source" {
  python3 - "$HEAPTAPE_SOURCE" <<'END'
import glob, re, sys
root = sys.argv[1]
source = "".join(re.sub(r'"\s*\n\s*"', "", open(path, encoding="utf-8").read())
                 for path in glob.glob(root + "/src/**/*.[ch]", recursive=True))
count, bad = 0, []
for path in [root + "/README.md", *glob.glob(root + "/docs/**/*.md", recursive=True)]:
    for message in re.findall(r"^ +heaptape: (.*)", open(path, encoding="utf-8").read(), re.M):
        for words in re.findall(r"[a-z]+(?: [a-z]+)+", message):
            count += 1
            rest = re.sub("^(thread|process|event|block)(s|es)? ", "", words)
            if words not in source and rest not in source:
                bad.append(f"{path}: '{words}' of '{message}' is not in a message of src")
print(count, *bad, sep="\n")
sys.exit(bool(bad) or count < 5)
END
}

# with_line LINE: the output of check-docs for a project whose README has this line.
with_line() {
  rm -rf project
  mkdir -p project/docs
  printf '# Project\n\n## A heading, too\n\n%s\n' "$1" >project/README.md
  : >project/CONTRIBUTING.md
  printf '# Page\n' >project/docs/page.md
  run "$HEAPTAPE_SOURCE/tools/check-docs" project
}

@test "a wide line is found, but not in tables and code" {
  wide=$(printf 'word %.0s' {1..21})
  with_line "$wide"
  [ "$status" -eq 1 ]
  [ "$output" = "project/README.md:5: 105 columns, more than 100" ]
  for fine in "${wide:0:100}" "| $wide |" "    $wide" "$(printf '```\n%s\n```' "$wide")" "[$wide](docs/page.md)"; do
    with_line "$fine"
    [ "$status" -eq 0 ]
  done
}

@test "a planted broken link is found" {
  with_line "See [this](docs/gone.md)."
  [ "$status" -eq 1 ]
  [ "$output" = "project/README.md:5: the link to docs/gone.md leads nowhere" ]
  with_line '<img src="docs/gone.png">'
  [ "$output" = "project/README.md:5: the link to docs/gone.png leads nowhere" ]
  with_line "See [this](docs/page.md#gone)."
  [ "$status" -eq 1 ]
  [ "$output" = "project/README.md:5: page.md has no heading for #gone" ]
  for fine in "[this](docs/page.md#page)" "[this](#a-heading-too)" "[this](https://example.com/gone)" '`[this](gone)`'; do
    with_line "See $fine."
    [ "$status" -eq 0 ]
  done
}
