# perl: three interpreters, which share two queues.
programs=perl
packages=perl
licence='Artistic-1.0-Perl OR GPL-1.0-or-later'

run() {
  record perl -Mthreads -MThread::Queue -e '
    my ($in, $out) = (Thread::Queue->new, Thread::Queue->new);
    sub work {
      while (defined(my $n = $in->dequeue)) {
        my %h = map { $_ => "x" x ($_ % 50) } 1 .. $n % 300;
        $out->enqueue(join ",", map { length } sort values %h);
      }
    }
    my @threads = map { threads->create(\&work) } 1 .. 3;
    $in->enqueue($_) for 1 .. $ARGV[0];
    $in->end;
    $_->join for @threads;
    $out->end;
    my $sum = 0;
    while (defined(my $text = $out->dequeue)) { $sum += length $text }
    print "$sum\n"' "$(part 5000)"
}
