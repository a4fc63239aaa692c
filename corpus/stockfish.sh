# stockfish: searches with two threads.
programs=stockfish
packages=stockfish
licence=GPL-3.0-or-later
varies='out err'

run() {
  record stockfish bench 16 2 7 default depth
}
