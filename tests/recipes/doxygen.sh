# doxygen with two threads.
programs=doxygen
packages=doxygen
licence=GPL-2.0-only
varies='html/* out err' # times

run() {
  code "$(part 300)" | sed 's/^int f/\/** A function. *\/\nint f/' >input.c
  cat >Doxyfile <<'END'
INPUT = input.c
NUM_PROC_THREADS = 2
GENERATE_LATEX = NO
HAVE_DOT = NO
EXTRACT_ALL = YES
SOURCE_BROWSER = YES
END
  record doxygen -q Doxyfile
}
