# doxygen with two threads.
programs=doxygen
packages=doxygen
licence=GPL-2.0-only
varies='html/* out err' # times

run() {
  code "$(part 300)" | sed 's/^int f/\/** A function. *\/\nint f/' >input.c
  doxygen -g - | sed -e 's/^INPUT  *=.*/INPUT = input.c/; s/^NUM_PROC_THREADS.*/NUM_PROC_THREADS = 2/; s/^GENERATE_LATEX.*/GENERATE_LATEX = NO/
    s/^HAVE_DOT .*/HAVE_DOT = NO/; s/^EXTRACT_ALL .*/EXTRACT_ALL = YES/; s/^SOURCE_BROWSER .*/SOURCE_BROWSER = YES/' >Doxyfile
  record doxygen -q Doxyfile
}
