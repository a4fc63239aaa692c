# tor without a network: its worker threads start and stop.
programs=tor
packages=tor
licence=BSD-3-Clause
varies='data/* log out err'

run() {
  mkdir -m 700 data
  : >torrc
  start tor -f torrc --defaults-torrc torrc --DataDirectory "$PWD/data" --DisableNetwork 1 \
    --SocksPort "127.0.0.1:$port" --NumCPUs 2 --Log "notice file $PWD/log" \
    --PidFile "$PWD/data/pid" --RunAsDaemon 0
  ready grep -q 'Starting with guard context' log
  stop
}
