// THE table of foreign formats. The registry, the choices of `import --format` and `export --format`, their help and man
// pages are derived from it.
//
// FORMATS_TABLE(X) calls X(symbol, name, direction, reads, writes) for each format:
//   symbol     its code is src/formats/format_SYMBOL.c, which defines `const struct format format_SYMBOL`
//   name       on the command line
//   direction  IMPORT, EXPORT or BOTH
//   reads      for import's help: what the files are; "" when the format is only written
//   writes     for export's help: what the files are, and a sentence on what they cannot hold; "" when it is only read
#ifndef HEAPTAPE_FORMATS_FORMATS_TABLE_H
#define HEAPTAPE_FORMATS_FORMATS_TABLE_H

// clang-format off
#define FORMATS_TABLE(X) \
    X(mtrace, "mtrace", BOTH, \
      "the raw trace of glibc's dj/malloc branch, with records of 64 or 32 bytes.", \
      "the raw trace of glibc's dj/malloc branch, with records of 64 bytes. Drops timestamps and thread starts and " \
      "exits. Writes C++ functions as malloc and free.") \
    X(wl, "wl", BOTH, \
      "the workload of glibc's dj/malloc branch, which trace_run plays.", \
      "the workload of glibc's dj/malloc branch, which trace_run plays. Drops timestamps and thread starts and exits. " \
      "Writes C++ functions as malloc and free, and other aligned allocations as memalign.") \
    X(tcmalloc, "tcmalloc", BOTH, \
      "the raw trace of gperftools' branch wip-malloc-tracing, plain or in LZ4 frames.", \
      "the raw trace of gperftools' branch wip-malloc-tracing, plain. Drops failed calls, frees of NULL and thread " \
      "starts, rounds sizes up to 8 and timestamps down to 1,024 ns. Writes other functions as malloc, free, realloc " \
      "or memalign.") \
    X(tcmalloc_replay, "tcmalloc-replay", BOTH, \
      "the instructions of gperftools' malloc-trace-replay.", \
      "the instructions of gperftools' malloc-trace-replay. Drops failed calls, frees of NULL and thread starts, and " \
      "rounds timestamps down to 1,024 ns. Writes other functions as malloc, free, realloc or memalign.") \
    X(logalloc, "logalloc", BOTH, \
      "the log of Firefox's logalloc, with or without thread ids.", \
      "the log of Firefox's logalloc, with thread ids. Drops timestamps and thread starts and exits. Writes functions " \
      "that logalloc lacks as the nearest one.") \
    X(logalloc_munged, "logalloc-munged", BOTH, \
      "the log of Firefox's logalloc after logalloc_munge.py, which numbers processes, threads and blocks.", \
      "the log of Firefox's logalloc as after logalloc_munge.py, which numbers processes, threads and blocks. Drops " \
      "what logalloc drops, addresses, failed calls, and calls on unknown blocks.") \
    X(android, "android", BOTH, \
      "the text trace of Android's memory_replay, unzipped, with or without timestamps.", \
      "the text trace of Android's memory_replay, with timestamps if FILE has them. Drops thread starts, " \
      "failed calls, frees of blocks from before the recording, and the duration of calls. Writes C++ functions as malloc and free, and other aligned allocations as memalign.") \
    X(heaptrack, "heaptrack", IMPORT, \
      "the data file of heaptrack, plain or in zstd frames, with its call stacks, or the file of heaptrack --raw. A data " \
      "file does not say which of several blocks of one size and call stack is freed: the newest one is assumed.", \
      "") \
    X(mallocbench, "mallocbench", IMPORT, \
      "the recordings (.ops) that WebKit's MallocBench plays.", \
      "") \
    X(ctf, "ctf", EXPORT, \
      "", \
      "a directory in the Common Trace Format 1.8, for babeltrace2 and Trace Compass. Drops dependencies between " \
      "threads.") \
    X(c, "c", EXPORT, \
      "", \
      "a C program without dependencies that makes the calls, with threads, for a report to the authors of an " \
      "allocator. Drops timestamps and failed calls. Writes C++ functions as malloc and free, and aligned " \
      "allocations as posix_memalign.") \
    X(json, "json", BOTH, \
      "JSON lines, one object per event, as heaptape dump --format json prints them.", \
      "JSON lines, one object per event, as heaptape dump --format json prints them. Drops nothing.")
// clang-format on

// The argument if formats of this direction are read, or written; else nothing.
#define FORMATS_IF_READ_IMPORT(text) text
#define FORMATS_IF_READ_EXPORT(text)
#define FORMATS_IF_READ_BOTH(text) text
#define FORMATS_IF_WRITTEN_IMPORT(text)
#define FORMATS_IF_WRITTEN_EXPORT(text)                               text
#define FORMATS_IF_WRITTEN_BOTH(text)                                 text

#define FORMATS_IMPORT_CHOICE(symbol, name, direction, reads, writes) FORMATS_IF_READ_##direction("|" name)
#define FORMATS_EXPORT_CHOICE(symbol, name, direction, reads, writes) FORMATS_IF_WRITTEN_##direction("|" name)
#define FORMATS_IMPORT_PARAGRAPH(symbol, name, direction, reads, writes)                                               \
    FORMATS_IF_READ_##direction("\n\n" name ": " reads)
#define FORMATS_EXPORT_PARAGRAPH(symbol, name, direction, reads, writes)                                               \
    FORMATS_IF_WRITTEN_##direction("\n\n" name ": " writes)

// "json|mtrace|…", and a paragraph for each format, for the tables of the command line.
#define FORMATS_IMPORT_CHOICES (&(FORMATS_TABLE(FORMATS_IMPORT_CHOICE))[1])
#define FORMATS_EXPORT_CHOICES (&(FORMATS_TABLE(FORMATS_EXPORT_CHOICE))[1])
#define FORMATS_IMPORT_HELP    FORMATS_TABLE(FORMATS_IMPORT_PARAGRAPH)
#define FORMATS_EXPORT_HELP    FORMATS_TABLE(FORMATS_EXPORT_PARAGRAPH)

#endif
