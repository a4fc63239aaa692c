# par2: recovery blocks, by OpenMP.
programs=par2
packages=par2
licence=GPL-2.0-or-later

run() {
  text "$(part 10000)" >input
  record par2 create -q -q -t2 -r10 -n1 output.par2 input
}
