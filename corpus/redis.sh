# redis-server under redis-benchmark: strings, lists, hashes, sorted sets, and keys that expire.
programs='redis-server redis-benchmark redis-cli'
packages='redis-server redis-tools'
licence=BSD-3-Clause
varies='out err'

run() {
  n=$((100000 * size / 100 + 1))
  start redis-server --port 0 --unixsocket "$PWD/socket" --save '' --dir "$PWD"
  ready redis-cli -s socket ping
  redis-benchmark -q -s socket -n "$n" -r 50000 -d 200 -P 8 -t set,get,incr,lpush,hset,sadd,zadd,lrange_100
  redis-benchmark -q -s socket -n "$n" -r 50000 -P 8 setex key:__rand_int__ 1 __rand_int__
  redis-cli -s socket flushall sync
  redis-cli -s socket shutdown nosave || true
  wait
}
