# prusa-slicer: slices a body by oneTBB.
programs=prusa-slicer
packages=prusa-slicer
licence=AGPL-3.0-only
varies='*.gcode out err' # times

run() {
  perl -e 'sub f { print "facet normal 0 0 0\nouter loop\n", map("vertex $_\n", @_), "endloop\nendfacet\n" } print "solid s\n"; my $n = shift;
    for (0 .. $n - 1) { my ($a, $b) = map { 6.2832 * $_ / $n } $_, $_ + 1; my @p = map { sprintf "%.4f %.4f", 20 * cos $_, 20 * sin $_ } $a, $b;
      f("$p[0] 0", "$p[1] 0", "$p[1] 20"); f("$p[0] 0", "$p[1] 20", "$p[0] 20"); f("0 0 0", "$p[1] 0", "$p[0] 0"); f("0 0 20", "$p[0] 20", "$p[1] 20") }
    print "endsolid s\n"' "$(part 600)" >input.stl
  record prusa-slicer --export-gcode -o output.gcode input.stl
}
