# transmission-daemon: checks a file that it will seed.
programs='transmission-daemon transmission-remote transmission-create'
packages='transmission-daemon transmission-cli'
licence=GPL-2.0-only
varies='config/* out err *.torrent'

run() {
  mkdir config data
  text "$(part 10000)" >data/file
  transmission-create -o file.torrent -t http://127.0.0.1:1/announce data/file >/dev/null
  start transmission-daemon -f -g "$PWD/config" -w "$PWD/data" -p "$port" -r 127.0.0.1 \
    -P "$((port + 1))" --no-dht --no-lpd --no-portmap -M
  ready listening "$port"
  transmission-remote "127.0.0.1:$port" -a file.torrent >/dev/null
  sleep 2
  transmission-remote "127.0.0.1:$port" -l >/dev/null
  stop
}
