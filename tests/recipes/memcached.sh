# memcached with three worker threads.
programs=memcached
packages=memcached
licence=BSD-3-Clause
varies=err

run() {
  start memcached -u root -t 3 -m 64 -s "$PWD/socket"
  ready test -S socket
  perl -MIO::Socket::UNIX -e 'my ($path, $n) = @ARGV; my @s = map { IO::Socket::UNIX->new($path) } 1 .. 9; my %seen; for my $i (1 .. $n) {
    my $s = $s[$i % 9]; my $v = "v$i " x ($i % 300); printf $s "set k%d 0 0 %d\r\n%s\r\n", $i % 700, length $v, $v; $seen{<$s>}++;
    printf $s "get k%d\r\n", $i % 77; while (<$s>) { last if /^END/; } } print map { "$seen{$_} $_" } sort keys %seen' "$PWD/socket" "$(part 30000)"
  stop
}
