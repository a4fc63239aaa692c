# mariadbd: a thread for each of four connections.
programs='mariadbd mariadb mariadb-install-db'
packages='mariadb-server-core mariadb-client-core'
licence=GPL-2.0-only
varies='data/* log.txt err *.pid'

# statements CLIENT N: inserts, and queries between them.
statements() {
  perl -e 'my ($client, $n) = @ARGV;
    for (1 .. $n) {
      print "insert into t (client, name) values ($client, concat(md5($_), \"$_\"));\n";
      next if $_ % 9;
      print "select count(*), max(name) from t where client = $client and name like \"a%\";\n";
    }' "$@"
}

run() {
  mariadb-install-db --no-defaults --user=root --datadir="$PWD/data" --skip-test-db \
    --auth-root-authentication-method=normal >log.txt 2>&1
  start mariadbd --no-defaults --user=root --datadir="$PWD/data" --socket="$PWD/socket" \
    --skip-networking --innodb-buffer-pool-size=16M --innodb-log-file-size=8M >>log.txt
  ready test -S socket
  client="mariadb --no-defaults --socket=$PWD/socket --user=root"
  $client -e 'create database d'
  $client d -e 'create table t (id int primary key auto_increment, client int, name varchar(60),
    key (name))'
  clients=''
  for c in 1 2 3 4; do
    statements $c "$(part 1500)" | $client d >"client$c.txt" &
    clients="$clients $!"
  done
  wait $clients
  $client d -e 'select client, count(*), min(name), max(name) from t group by client'
  stop
}
