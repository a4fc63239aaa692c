# The shell of SQLite: inserts, an index, joins, groups, sorts, updates and deletes.
programs=sqlite3
packages=sqlite3
licence=blessing

run() {
  cat >input <<END
.parameter set \$n $((150000 * size / 100 + 10))
create table a(id integer primary key, name text, x real);
create table b(id integer primary key, a integer, note text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < \$n)
  insert into a select i, printf('%08x', i * 2654435761 % 4294967296), i * 0.5 from n;
insert into b select id, id * 7919 % \$n, group_concat(name, x) over (order by id rows 3 preceding) from a;
create index b_a on b(a);
create index a_name on a(name);
select count(*), sum(length(note)) from a join b on b.a = a.id where a.name > '8';
select substr(name, 1, 3), count(*), group_concat(id) from a group by 1 order by 2 desc;
update a set name = upper(name) || id where id % 3 = 0;
delete from b where a % 5 = 0;
select json_group_array(json_object('id', id, 'name', name)) from a where id % 2;
vacuum;
END
  record sqlite3 data.db <input
}
