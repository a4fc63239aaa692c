# gmsh: meshes a body by two threads.
programs=gmsh
packages=gmsh
licence=GPL-2.0-or-later
varies='out output.msh' # times, the order of threads

run() {
  cat >input.geo <<END
SetFactory("OpenCASCADE");
Box(1) = {0, 0, 0, 1, 1, 1};
Sphere(2) = {0.5, 0.5, 0.5, 0.3};
BooleanDifference(3) = { Volume{1}; Delete; }{ Volume{2}; Delete; };
Mesh.CharacteristicLengthMax = 0.12;
Mesh.Algorithm3D = 10;
END
  record gmsh -nt 2 -3 -v 2 -format msh2 -o output.msh input.geo
}
