# perl: three interpreters, which share a queue.
programs=perl
packages=perl
licence='Artistic-1.0-Perl OR GPL-1.0-or-later'

run() {
  record perl -Mthreads -MThread::Queue -e 'my ($in, $out) = map { Thread::Queue->new } 1, 2; my @t = map { threads->create(sub {
    while (defined(my $n = $in->dequeue)) { my %h = map { $_ => "x" x ($_ % 50) } 1 .. $n % 300; $out->enqueue(join ",", map { length } sort values %h) } }) } 1 .. 3;
    $in->enqueue($_) for 1 .. $ARGV[0]; $in->end; $_->join for @t; $out->end; my $s = 0; while (defined(my $l = $out->dequeue)) { $s += length $l } print "$s\n"' "$(part 5000)"
}
