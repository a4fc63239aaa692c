# zpaq with two threads.
programs=zpaq
packages=zpaq
licence=GPL-3.0-or-later
varies='*.zpaq out err' # times

run() {
  text "$(part 20000)" >input
  record zpaq add output.zpaq input -threads 2
}
