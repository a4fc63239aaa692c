# gmx grompp: the setup of a box of water.
programs=gmx
packages='gromacs gromacs-data'
licence=LGPL-2.1-or-later
varies='* out err'

run() {
  record gmx solvate -cs spc216.gro -box 3 3 3 -o water.gro
}
