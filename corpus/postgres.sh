# A backend of PostgreSQL under pgbench: its transactions, and queries with groups, sorts, arrays and JSON.
programs='postgres initdb pgbench psql setpriv'
packages='postgresql-15 postgresql-client-15'
licence=PostgreSQL
varies='data/* out err'

backend() {
  psql -Atc "select pid from pg_stat_activity where query ~ '^(BEGIN|UPDATE|INSERT|END)'" | grep . >"$work/process"
}

run() {
  cat >report.sql <<END
select bid, count(*), sum(length(s)) from (select bid, string_agg(filler || aid, ',' order by abalance, aid) as s
  from pgbench_accounts where aid % 7 = 1 group by bid, aid % 50) as t group by 1 order by 2;
select jsonb_agg(jsonb_build_object('aid', aid, 'words', regexp_split_to_array(filler || aid, ' +')))
  from pgbench_accounts where aid % 90 = 1;
END
  export PGHOST="$PWD" PGUSER=corpus PGDATABASE=postgres
  user='' # it refuses to run as root
  [ "$(id -u)" != 0 ] || { chown postgres . .. && user='setpriv --reuid=postgres --regid=postgres --clear-groups --'; }
  $user initdb -D data --no-sync --auth=trust -U corpus
  $user "$heaptape" record -q -f -o "$trace" -- postgres -D data -k "$PWD" -h '' -F -c max_parallel_workers_per_gather=0 &
  server=$!
  ready psql -c 'select 1'
  pgbench -i -s 2
  pgbench -c 1 -t $((800 * size / 100 + 100)) -b tpcb-like@9 -f report.sql@1 & load=$!
  ready backend && wait "$load"
  kill -INT "$(head -n 1 data/postmaster.pid)" && wait "$server"
}
