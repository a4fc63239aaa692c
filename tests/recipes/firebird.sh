# isql-fb: Firebird's engine in its own process, with its helper threads.
programs=isql-fb
packages='firebird3.0-utils firebird3.0-server-core'
licence=IPL-1.0
varies='*.fdb'

run() {
  {
    echo "create database '$PWD/test.fdb';"
    echo 'create table t (id int primary key, name varchar(60));'
    echo 'create index i on t (name); commit;'
    perl -e 'print "insert into t values ($_, \x27name $_\x27);\n" for 1 .. shift' "$(part 20000)"
    echo "commit; select count(*), max(name) from t where name like 'name 1%';"
    echo 'select first 3 * from t order by name desc;'
  } >input.sql
  record isql-fb -q -i input.sql
}
