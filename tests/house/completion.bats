# Completion in bash, fish and zsh, with heaptape in PATH as for a user.
load ../helper

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  mkdir bin files && : >files/trace.ht
  ln -s "$HEAPTAPE" bin/heaptape
  export PATH=$PWD/bin:$PATH
}

# options COMMAND: the options listed in its man page.
options() {
  "$HEAPTAPE" help --man "$1" | sed -n '/^# OPTIONS/,$ s/.*\*\(--[a-z0-9-]*\)\*.*/\1/p' | sort
}

commands() {
  "$HEAPTAPE" help --man | sed -n 's/^\*heaptape-\([a-z_]*\)\*.*/\1/p'
}

# bash_offers WORD...: completions by bash of the last word.
bash_offers() {
  bash -c 'complete() { :; }; compopt() { :; }
    . "$HEAPTAPE_SOURCE/docs/completion/heaptape.bash"
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _heaptape
    printf "%s\n" "${COMPREPLY[@]}"' - "$@"
}

# fish_offers LINE...: completions by fish at the end of each line, without descriptions.
fish_offers() {
  # shellcheck disable=SC2016 # fish expands it
  HOME=$PWD fish --no-config -c 'source $HEAPTAPE_SOURCE/docs/completion/heaptape.fish
    for line in $argv; complete -C $line; end' "$@" 2>err | cut -f1
}

# zsh_completes LINE TEXT: the tab key after LINE makes zsh print TEXT.
zsh_completes() {
  mkdir -p functions
  ln -sf "$HEAPTAPE_SOURCE/docs/completion/heaptape.zsh" functions/_heaptape
  python3 - "$@" <<'END'
import os, pty, select, signal, sys, time

line, wanted = (word.encode() for word in sys.argv[1:])
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="dumb", COLUMNS="200", HOME=os.getcwd())
    os.execvp("zsh", ["zsh", "-f", "-i"])


def read_until(text, keys):
    os.write(fd, keys)
    seen, end = b"", time.time() + 60
    while text not in seen and time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65536)
    return text in seen or sys.exit(f"no {text} in {seen}")


try:
    read_until(b"READY", b'PROMPT=; fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -D; print REA""DY\n')
    read_until(wanted, line + b"\t")
finally:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
END
}

@test "bash: commands, options, values, operands and programs" {
  [ "$(bash_offers heaptape hel)" = help ]
  [ "$(bash_offers heaptape --v)" = --version ]
  [ "$(bash_offers heaptape help slic)" = slice ]
  [ "$(bash_offers heaptape record --ou)" = --output= ]
  [ "$(bash_offers heaptape record --start = p)" = paused ]
  [ "$(bash_offers heaptape record -o files/)" = files/trace.ht ]
  [ "$(bash_offers heaptape record --collect fil)" = files ]
  [ "$(bash_offers heaptape replay -a glib)" = glibc ]
  [ "$(bash_offers heaptape stat files/t)" = files/trace.ht ]
  [ "$(bash_offers heaptape ctl res | sort | xargs)" = "reset resume" ]
  [ "$(bash_offers heaptape record -o x -- heaptap)" = heaptape ]
  [ "$(bash_offers heaptape record -- heaptape files/)" = files/trace.ht ]
}

@test "bash: an optional value follows '='" {
  [ "$(bash_offers heaptape record --stacks = s)" = sample ]
  bash_offers heaptape record --stacks sampl >found
  ! grep -qx sample found || false
}

@test "bash: every option of every command" {
  for command in $(commands); do
    options "$command" >want
    bash_offers heaptape "$command" -- | sed 's/=$//' | sort >found
    diff want found
  done
}

@test "fish: commands, options, values, operands and programs" {
  command -v fish >/dev/null || skip "no fish"
  fish_offers 'heaptape hel' 'heaptape --v' 'heaptape help slic' 'heaptape record --ou' 'heaptape record --start=p' \
    'heaptape record --start p' 'heaptape record -o files/' 'heaptape record --collect fil' 'heaptape replay -a glib' \
    'heaptape stat files/t' 'heaptape ctl resu' 'heaptape record -o x -- heaptap' 'heaptape record -- heaptape tra' \
    'heaptape record --stacks=' >found
  cat err found
  printf '%s\n' help --version slice --output --start=paused paused files/trace.ht files/ glibc files/trace.ht resume \
    heaptape trace_run --stacks=sample >want
  diff want found
  [ ! -s err ]
}

@test "fish: every option of every command" {
  command -v fish >/dev/null || skip "no fish"
  for command in $(commands); do
    options "$command" | sed "s/^/$command /"
  done | sort >want
  for command in $(commands); do
    fish_offers "heaptape $command --" | sed "s/=$//; s/^/$command /"
  done | sort -u >found
  diff want found
}

@test "zsh: commands, options, values, operands and programs" {
  command -v zsh >/dev/null || skip "no zsh"
  zsh_completes 'heaptape hel' 'heaptape help '
  zsh_completes 'heaptape --v' 'heaptape --version '
  zsh_completes 'heaptape help slic' 'heaptape help slice '
  zsh_completes 'heaptape record --ou' 'heaptape record --output='
  zsh_completes 'heaptape record --start=p' 'heaptape record --start=paused '
  zsh_completes 'heaptape record --stacks=s' 'heaptape record --stacks=sample '
  zsh_completes 'heaptape record --collect fil' 'heaptape record --collect files/'
  zsh_completes 'heaptape replay -a glib' 'heaptape replay -a glibc '
  zsh_completes 'heaptape stat files/t' 'heaptape stat files/trace.ht '
  zsh_completes 'heaptape ctl resu' 'heaptape ctl resume '
  zsh_completes 'heaptape record -o x -- heaptap' 'heaptape record -o x -- heaptape '
  zsh_completes 'heaptape record -- heaptape trac' 'heaptape record -- heaptape trace_run '
}

@test "zsh: every option of every command" {
  for command in $(commands); do
    options "$command" >want
    sed -n "/^_heaptape_$command()/,/^}/p" "$HEAPTAPE_SOURCE/docs/completion/heaptape.zsh" |
      sed -E -n "s/^    '[^[]*(--[a-z0-9-]+)[^[]*\[.*/\1/p" | sort >found
    diff want found
  done
}
