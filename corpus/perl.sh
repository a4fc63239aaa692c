# perl: a hash of words, regular expressions, a sort, nested data.
programs=perl
packages=perl-base
licence='Artistic-1.0-Perl OR GPL-1.0-or-later'

run() {
  cat >input.pl <<'END'
my ($n, $seed, %count, @rows) = ($ARGV[0], 1);
for my $i (1 .. $n) {
    my $line = join ' ', map { $seed = ($seed * 1103515245 + 12345) % 2147483648; sprintf '%x', $seed % 5003 } 1 .. 12;
    $count{$_}++ for split / /, $line;
    (my $changed = $line) =~ s/([a-f]+)/<$1>/g;
    push @rows, { number => $i, words => [split / /, $changed], line => $line };
    splice @rows, 0, 10000 if @rows > 20000;
}
my @sorted = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
print "@sorted[0 .. 2] ", scalar(@rows), "\n";
print length(join "\n", map { join ',', @{$_->{words}} } sort { $a->{line} cmp $b->{line} } @rows), "\n";
END
  PERL_HASH_SEED=0 record perl input.pl $((100000 * size / 100 + 10))
}
