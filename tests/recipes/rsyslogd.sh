# rsyslogd: lines by UDP, through queues with threads into files.
programs=rsyslogd
packages=rsyslog
licence=GPL-3.0-or-later
varies='pid out err all.txt'

run() {
  cat >rsyslog.conf <<END
global(workDirectory="$PWD")
module(load="imudp")
template(name="t" type="string" string="%msg:::drop-last-lf%\\n")
input(type="imudp" address="127.0.0.1" port="$port" ruleset="r")
ruleset(name="r" queue.type="linkedList" queue.workerThreads="2"
    queue.workerThreadMinimumMessages="10") {
  action(type="omfile" file="$PWD/all.txt" template="t" queue.type="linkedList")
}
END
  start rsyslogd -n -f rsyslog.conf -i "$PWD/pid"
  ready test -s pid
  sleep 0.5
  perl -MIO::Socket::INET -e 'my ($port, $n) = @ARGV;
    my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Proto => "udp");
    for (1 .. $n) {
      $s->send("<13>Jan  1 00:00:00 host test: line $_ " . "x" x ($_ % 200));
      select undef, undef, undef, 0.001 if $_ % 20 == 0;
    }' "$port" "$(part 20000)"
  sleep 0.5
  stop
}
