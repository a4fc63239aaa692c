# povray: spheres and a light, rendered by two threads.
programs=povray
packages=povray
licence=AGPL-3.0-or-later
varies='err output.ppm' # times, the order of blocks

run() {
  cat >scene.pov <<END
#version 3.7;
global_settings { assumed_gamma 1 }
camera { location <0, 2, -9> look_at 0 }
light_source { <10, 20, -10> color rgb 1 }
plane { y, -1 pigment { checker color rgb 1 color rgb 0.2 } finish { reflection 0.3 } }
#declare i = 0;
#while (i < 100)
  sphere {
    <mod(i, 10) - 5, 0.4 * mod(i, 7) - 1, i / 10 - 4>, 0.4
    pigment { color rgb <i / 100, 0.5, 1 - i / 100> } finish { phong 1 }
  }
  #declare i = i + 1;
#end
END
  record povray +Iscene.pov +W160 +H120 +Q9 -D -GA +WT2 +FP +Ooutput.ppm
}
