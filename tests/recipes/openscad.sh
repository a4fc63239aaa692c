# openscad: the difference of solids, by CGAL.
programs=openscad
packages=openscad
licence=GPL-2.0-or-later
varies=err # times

run() {
  cat >input.scad <<'END'
for (i = [0:2]) translate([12 * i, 0, 0]) difference() {
  cube(10);
  translate([5, 5, i + 3]) sphere(4, $fn = 12);
}
END
  QT_QPA_PLATFORM=offscreen record openscad -o output.stl input.scad
}
