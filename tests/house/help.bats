# --help is short, and the man pages describe every option.
load ../helper

commands() {
  "$HEAPTAPE" help --man | sed -n 's/^\*heaptape-\([a-z_]*\)\*.*/\1/p'
}

# columns FILE: the length of its longest line.
columns() {
  awk '{ if (length > longest) longest = length } END { print longest + 0 }' "$1"
}

@test "no help is longer than 70 lines or wider than 80 columns" {
  local command lines
  for command in '' $(commands); do
    # shellcheck disable=SC2086 # none for the list of commands
    "$HEAPTAPE" help $command >help
    lines=$(wc -l <help)
    echo "help $command: $lines lines, $(columns help) columns"
    [ "$lines" -le 70 ]
    [ "$(columns help)" -le 80 ]
  done
}

@test "every help has usage, options, examples and the name of the man page" {
  local command
  for command in $(commands); do
    echo "$command"
    "$HEAPTAPE" "$command" --help >help
    grep -q "^usage: heaptape $command \[options\]" help
    grep -q '^  -h, --help ' help
    sed -n '/^Examples:$/,$p' help | grep -Eq "^    (.*\| )?heaptape $command( |\$)"
    [ "$(tail -n 1 help)" = "Manual: man heaptape-$command" ]
  done
}

@test "every option of a help is in the man page with a description" {
  local command option
  for command in $(commands); do
    local page=$HEAPTAPE_SOURCE/docs/man/heaptape-$command.1.scd
    "$HEAPTAPE" "$command" --help | sed -nE 's/^ {2,6}(-., )?(--[a-z0-9-]+).*/\2/p' | sort -u >options
    [ -s options ]
    while read -r option; do
      echo "$command $option"
      grep -Eq "^(\*-.\*, )?\*$option\*" "$page"
    done <options
    echo "$command: description"
    sed -n '/^# DESCRIPTION/,/^# OPTIONS/p' "$page" | grep -q '^[A-Z\\*]'
    echo "$command: only options, their details and headings"
    [ -z "$(sed -n '/^# OPTIONS/,/^# EXAMPLES/p' "$page" | grep -Ev $'^(\t|\\*|#|$)')" ]
  done
}

@test "every group of the list of commands is in the man page, and every command once in the list" {
  "$HEAPTAPE" help | sed -n 's/^\([A-Z][a-z ]*\):$/\1/p' >groups
  "$HEAPTAPE" help --man | sed -n 's/^## //p' | diff groups -
  "$HEAPTAPE" help | sed -n 's/^  \([a-z_]*\) .*/\1/p' | sort | diff - <({ commands; echo help; } | sort)
  [ "$(head -n 1 groups)" = "Start here" ]
}

@test "the examples use options that exist" {
  # Not $HEAPTAPE, which expects JSON after --json.
  python3 - "$HEAPTAPE_BUILD/heaptape" "$HEAPTAPE_SOURCE"/docs/man/*.scd <<'END'
import re, shlex, subprocess, sys

def lexer(line):
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    return words


heaptape, pages = sys.argv[1], sys.argv[2:]
n = 0
for page in pages:
    text = open(page).read()
    for block in re.findall(r"^```\n(.*?)^```", text, re.S | re.M):
        # scdoc reads \\ as one backslash; $(...) is a process here.
        block = re.sub(r"\$\([^)]*\)", "4711", block.replace("\\\\", "\\")).replace("\\\n", " ")
        for line in block.splitlines():
            words = list(lexer(line)) + ["|"]
            while words:
                end = next(i for i, word in enumerate(words) if set(word) <= set("|&;<>()"))
                simple, words = words[:end], words[end + 1:]
                if simple[:1] != ["heaptape"]:
                    continue
                before = simple[1:simple.index("--") if "--" in simple else None]
                run = subprocess.run([heaptape, *before, "--help"], capture_output=True, text=True)
                assert run.returncode == 0 and run.stdout.startswith("usage: "), (page, line, run.stderr)
                n += 1
assert n > 60, n
END
}

@test "man finds the pages of a build folder" {
  command -v scdoc >/dev/null && command -v man >/dev/null || skip "no scdoc or no man"
  [ "$(PATH=$HEAPTAPE_BUILD:$PATH man -w heaptape-record)" = "$HEAPTAPE_BUILD/man/man1/heaptape-record.1" ]
}
