# rocksdb's ldb: loads keys and compacts them; the scan is not recorded.
programs=ldb
packages=rocksdb-tools
licence=Apache-2.0
varies='db/* err'

run() {
  perl -e 'printf "key%07d ==> value %s\n", $_ * 7919 % 999983, "x" x ($_ % 200) for 1 .. shift' \
    "$(part 100000)" >input
  record ldb --db="$PWD/db" load --create_if_missing --compact --disable_wal \
    --write_buffer_size=262144 <input
  ldb --db="$PWD/db" scan --max_keys=20
}
