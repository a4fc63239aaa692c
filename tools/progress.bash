# Progress of long commands, as plain lines: `source tools/progress.bash`.

# progress_of LOG: the done and total steps at the end of a log as "12 of 90", from ninja's "[12/90]
# …", meson test's "12/90 name …", or apt's status lines "pmstatus:name:13.3:Unpacking name".
progress_of() {
  tail -c 20000 "$1" 2>/dev/null | awk '
    match($0, /^ *\[?[0-9]+\/[0-9]+[] ]/) {
      n = substr($0, RSTART, RLENGTH)
      gsub(/[^0-9\/]/, "", n)
      sub("/", " of ", n)
      last = n
    }
    /^(dl|pm)status:/ {
      split($0, part, ":")
      last = sprintf("%s%d %%, %s", /^dl/ ? "downloads " : "", part[3], part[4])
    }
    END { if (last != "") print last ", " }'
}

# with_progress TEXT LOG COMMAND...: runs the command with its output in LOG, and prints its
# progress every 6 seconds. The command in $progress_beside prints the progress of other jobs.
# Returns the command's status.
with_progress() {
  local text=$1 log=$2 status=0 start=$SECONDS ticks
  shift 2
  : >"$log"
  # The loop ends when its input is closed. A kill could reach it before bash has removed the EXIT
  # trap there, which would then run and delete the script's files.
  exec {ticks}> >(until read -rt 6 || [ $? -le 128 ]; do
    echo "  $text: $(progress_of "$log")$((SECONDS - start)) s$(${progress_beside:-})"
  done)
  "$@" >"$log" 2>&1 </dev/null {ticks}>&- || status=$?
  exec {ticks}>&-
  wait "$!" || true
  return "$status"
}
