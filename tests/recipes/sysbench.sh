# sysbench: three threads, each with a Lua interpreter.
programs=sysbench
packages=sysbench
licence=GPL-2.0-or-later
varies=out

run() {
  record sysbench threads --threads=3 --events="$(part 5000)" --time=0 run
}
