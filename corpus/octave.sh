# octave: matrices, by a BLAS with threads, and cells.
programs=octave-cli
packages=octave
licence=GPL-3.0-or-later
varies=err # it may print a warning at exit

run() {
  cat >main.m <<END
a = reshape(mod((1:90000) * 7919, 1009), 300, 300);
disp(round(trace(a * a')));
c = arrayfun(@(i) sprintf('%d', i), 1:$(part 50000), 'UniformOutput', false);
disp(numel(strjoin(c, ',')));
disp(size(inv(a + 5000 * eye(300))));
END
  record octave-cli --no-gui --norc main.m
}
