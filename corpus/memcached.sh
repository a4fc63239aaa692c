# memcached with three worker threads.
programs=memcached
packages=memcached
licence=BSD-3-Clause
varies=err

run() {
  start memcached -u root -t 3 -m 64 -s "$PWD/socket"
  ready test -S socket
  perl -MIO::Socket::UNIX -e 'my ($path, $n) = @ARGV;
    my (%answers, $line);
    my @connections = map { IO::Socket::UNIX->new($path) } 1 .. 9;
    for my $i (1 .. $n) {
      my $s = $connections[$i % 9];
      my $value = "v$i " x ($i % 300);
      printf $s "set k%d 0 0 %d\r\n%s\r\n", $i % 700, length $value, $value;
      $answers{<$s>}++;
      printf $s "get k%d\r\n", $i % 77;
      do { $line = <$s> } until $line =~ /^END/;
    }
    print "$answers{$_} $_" for sort keys %answers' "$PWD/socket" "$(part 30000)"
  stop
}
