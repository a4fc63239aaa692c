# prusa-slicer: slices a cylinder, by oneTBB.
programs=prusa-slicer
packages=prusa-slicer
licence=AGPL-3.0-only
varies='*.gcode out err' # times

run() {
  perl -e 'my $n = shift;
    sub facet {
      print "facet normal 0 0 0\nouter loop\n", map("vertex $_\n", @_), "endloop\nendfacet\n";
    }
    print "solid s\n";
    for (0 .. $n - 1) {
      my ($a, $b) = map { sprintf "%.4f %.4f", 20 * cos $_, 20 * sin $_ } 6.2832 * $_ / $n,
        6.2832 * ($_ + 1) / $n;
      facet("$a 0", "$b 0", "$b 20");
      facet("$a 0", "$b 20", "$a 20");
      facet("0 0 0", "$b 0", "$a 0");
      facet("0 0 20", "$a 20", "$b 20");
    }
    print "endsolid s\n"' "$(part 600)" >input.stl
  record prusa-slicer --export-gcode -o output.gcode input.stl
}
