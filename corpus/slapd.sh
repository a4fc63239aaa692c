# slapd: its pool of threads searches a directory in memory-mapped files.
programs='slapd slapadd ldapsearch'
packages='slapd ldap-utils'
licence=OLDAP-2.8
varies='data/* err'

entries() {
  printf 'dn: dc=d\nobjectClass: dcObject\nobjectClass: organization\no: d\ndc: d\n\n'
  perl -e 'print "dn: cn=n$_,dc=d\nobjectClass: inetOrgPerson\ncn: n$_\nsn: s$_\n",
    "mail: m$_\@d\n\n" for 1 .. $ARGV[0]' "$1"
}

run() {
  mkdir data
  cat >slapd.conf <<END
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
threads 4
database mdb
maxsize 67108864
suffix dc=d
rootdn cn=root,dc=d
rootpw x
directory data
index cn eq,sub
END
  entries "$(part 5000)" | slapadd -q -f slapd.conf
  start slapd -h "ldap://127.0.0.1:$port" -f slapd.conf -d 0
  ready listening "$port"
  search="ldapsearch -x -H ldap://127.0.0.1:$port -b dc=d"
  for q in 'cn=n1*' 'mail=m7*' 'sn=s33' 'cn=*9'; do
    $search -LLL "($q)" mail | grep -c ^mail
  done
  $search -D cn=root,dc=d -w x -E pr=50/noprompt '(objectClass=*)' | grep -c ^dn
  stop
}
