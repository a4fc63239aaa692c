#!/bin/bash
# surroundings.bash SEED: runs known (known.c) under record in a random environment, in a separate
# mount namespace, in the current, empty directory. Writes:
#   what      the command line and all other choices
#   out, err  standard output and error; `status`
#   want      the output and exit status of known, and its numbers of bursts and threads
# and the trace t.ht.
# shellcheck disable=SC2154 # what pick assigns
RANDOM=$1
# pick NAME CHOICE...
pick() {
  local name=$1
  shift $((1 + RANDOM % ($# - 1)))
  printf -v "$name" %s "$1"
}

pick n 1 50 2000
pick m 1 3 5
pick mode threads short kill abort _exit fork exec sighandler
says=$n exits=0 bursts=$n threads=0
case $mode in
  threads) threads=$m n=$((20 * n)) says=$((n * m)) bursts=$((n * m)) ;;
  short) threads=$((16 * n)) says=$((n * 16 * m)) bursts=$says ;;
  kill) exits=137 ;;
  abort) exits=134 ;;
  fork) says=$((n + 2 * n * m)) bursts=$says ;;
  exec) bursts=$((n * m)) ;;
  sighandler) says=$((n * m + m)) bursts=$((n * m)) ;;
esac
echo "$says $exits $bursts $threads" >want
mkdir -p disk shm empty
chmod 555 empty

# Half of the choices change nothing.
limits=(':' ':' ':' ':' 'ulimit -n 6' 'ulimit -n 16' 'ulimit -Sn 40' 'ulimit -v 400000' 'ulimit -v 800000'
  'ulimit -f 0' 'ulimit -f 1000' 'ulimit -s 64' 'ulimit -l 0' 'ulimit -d 400000' 'ulimit -c 0')
pick outer_limit "${limits[@]}"
pick inner_limit "${limits[@]}"
pick outer_files '' '' '' '<&-' '2>&-' '0<&- 2>&-' '4<&0 5<&0 6<&0 7<&0 8<&0'
pick inner_files '' '' '' '' '<&-' '0<&- 2>&-'
pick outer_space '' '' '' '' 'unshare -T --boottime 1000' 'unshare -pf' 'unshare -pf --mount-proc' 'unshare -n' 'unshare -i' 'unshare -u'
pick inner_space '' '' '' '' 'unshare -T --monotonic 1000' 'unshare -pf' 'unshare -n' 'unshare -C' 'nohup' 'nice' 'setsid -w'
pick inner_env '' '' '' '' '' '' 'env TMPDIR=/nonexistent' 'env MALLOC_ARENA_MAX=1'
pick shm '' '' '' '' size=1m size=65m ro full fills disk
pick output '' '' '' '' '' size=200k size=2m fills
pick proc '' '' '' '' '' '' outer inner
pick options '' '' '' '--lossy' '-z none' '--stacks=8' '--usable' '--maps'
# With a limit of 6 descriptors, descriptor 6 does not exist, and these redirections would leave no
# descriptor for the start of heaptape.
[ "$outer_limit" != "ulimit -n 6" ] && [ "$inner_limit" != "ulimit -n 6" ] || [ "${outer_files#4}" = "$outer_files" ] || outer_files=
# If the address space is limited, several arenas of glibc would leave no space for thread stacks.
[ "${outer_limit#*-v}${inner_limit#*-v}" = "$outer_limit$inner_limit" ] || inner_env='env MALLOC_ARENA_MAX=1'
# unshare -T needs /proc.
[ -z "$proc" ] || [ "$inner_space" != 'unshare -T --monotonic 1000' ] || inner_space='nice'

case $shm in
  size=*) mount -t tmpfs -o "$shm,mode=1777" tmpfs /dev/shm ;;
  ro) mount -t tmpfs -o size=64m,ro tmpfs /dev/shm ;;
  full | fills) mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm ;;
  disk) mount --bind empty /dev/shm ;;
esac
case $output in
  size=*) mount -t tmpfs -o "$output" tmpfs disk ;;
  fills) mount -t tmpfs -o size=20m tmpfs disk ;;
esac
[ "$shm" != full ] || head -c 64m /dev/zero >/dev/shm/fill 2>/dev/null
[ "$shm" != fills ] || (sleep 0.02; head -c 64m /dev/zero >/dev/shm/fill) >/dev/null 2>&1 &
[ "$output" != fills ] || (sleep 0.02; head -c 20m /dev/zero >disk/fill) >/dev/null 2>&1 &

program="$inner_limit; $inner_env $(command -v known) $mode $n $m $inner_files; echo status \$?"
[ "$proc" != inner ] || program="umount -l /proc; $program"
export PROGRAM=$program PROGRAM_INSIDE="exec bash -c \"\$PROGRAM\""
[ -z "$inner_space" ] || PROGRAM_INSIDE="exec $inner_space bash -c \"\$PROGRAM\""
[ "$proc" != inner ] || PROGRAM_INSIDE="exec unshare -m ${PROGRAM_INSIDE#exec}"
record="$outer_limit; exec $HEAPTAPE record -f $options -o disk/t.ht -- bash -c \"\$PROGRAM_INSIDE\" $outer_files"
[ "$proc" != outer ] || record="umount -l /proc; $record"
[ -z "$outer_space" ] || [ "$proc" = outer ] || outer="$outer_space"
{
  echo "$record"
  echo "$PROGRAM_INSIDE"
  echo "PROGRAM: $program"
  echo "shm: $shm, output: $output, space: $outer"
} >"what"
# The output passes through pipes, because the limit of file sizes must not apply to the output.
# shellcheck disable=SC2086 # words
{
  {
    timeout -k 1 120 $outer bash -c "$record"
    echo $? >status
  } 2>&3 3>&- | cat >out 3>&-
} 3>&1 | cat >err
cp disk/t.ht . 2>/dev/null || true
