# mariadbd: a thread for each of four connections.
programs='mariadbd mariadb mariadb-install-db'
packages='mariadb-server-core mariadb-client-core'
licence=GPL-2.0-only
varies='data/* log.txt err *.pid'

run() {
  mariadb-install-db --no-defaults --user=root --datadir="$PWD/data" --auth-root-authentication-method=normal --skip-test-db >log.txt 2>&1
  start mariadbd --no-defaults --user=root --datadir="$PWD/data" --socket="$PWD/socket" --skip-networking \
    --innodb-buffer-pool-size=16M --innodb-log-file-size=8M >>log.txt
  ready test -S socket
  client="mariadb --no-defaults --socket=$PWD/socket --user=root"
  $client -e 'create database d; create table d.t (id int primary key auto_increment, client int, name varchar(60), key (name))'
  clients=''
  for c in 1 2 3 4; do
    perl -e 'print "insert into t (client, name) values ($ARGV[0], concat(md5($_), \"$_\"));\n",
      $_ % 9 ? "" : "select count(*), max(name) from t where client = $ARGV[0] and name like \"a%\";\n" for 1 .. $ARGV[1]' \
      $c "$(part 1500)" | $client d >"client$c.txt" &
    clients="$clients $!"
  done
  wait $clients
  $client d -e 'select client, count(*), substr(group_concat(name order by name), 1, 99) from t group by client'
  stop
}
