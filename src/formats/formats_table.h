// THE table of foreign formats. The registry, the choices of `import --format` and `export --format`, their help and man
// pages are derived from it.
//
// IO_FORMATS(X) calls X(symbol, name, direction, summary, loses) for each format:
//   symbol     its code is src/formats/format_SYMBOL.c, which defines `const struct format format_SYMBOL`
//   name       on the command line
//   direction  IMPORT, EXPORT or BOTH
//   summary    whose format it is, and what of it is read and written
//   loses      what an export cannot hold; "" when nothing is lost or nothing exported
#ifndef HEAPTAPE_FORMATS_FORMATS_TABLE_H
#define HEAPTAPE_FORMATS_FORMATS_TABLE_H

// clang-format off
#define IO_FORMATS(X) \
    X(mtrace, "mtrace", BOTH, "glibc dj/malloc: the raw trace, records of 64 bytes; records of 32 are read too", \
      "times, thread births and ends, C++ calls, path bits") \
    X(wl, "wl", BOTH, "glibc dj/malloc: the workload that trace_run plays", \
      "times, thread births and ends, C++ calls; other aligned calls become memalign") \
    X(tcmalloc, "tcmalloc", IMPORT, "gperftools wip-malloc-tracing: the raw trace, in LZ4 frames or plain", "") \
    X(tcmalloc_replay, "tcmalloc-replay", BOTH, "gperftools malloc-trace-replay: the instructions that replay plays", \
      "times below 1,024 ns, thread births, failed calls, calls other than malloc, free, realloc and memalign") \
    X(logalloc, "logalloc", BOTH, "Firefox's logalloc, raw, with and without thread ids", \
      "times, C++ calls and others that it has no function for") \
    X(logalloc_munged, "logalloc-munged", BOTH, "Firefox's logalloc, numbered as by logalloc_munge.py", \
      "addresses, failed calls, times, C++ calls and others that it has no function for") \
    X(android, "android", BOTH, "Android's memory_replay, with and without times; to be unzipped before", \
      "how long calls took, C++ calls; other aligned calls become memalign") \
    X(ctf, "ctf", EXPORT, "the Common Trace Format 1.8, a folder, for babeltrace2 and Trace Compass", \
      "waits between threads") \
    X(json, "json", BOTH, "JSON lines, one object an event, as `heaptape dump --format json` prints them", "")
// clang-format on

// Formats of one direction: F(name) of the format where it has it, nothing else.
#define IO_IMPORTS_IMPORT(text) text
#define IO_IMPORTS_EXPORT(text)
#define IO_IMPORTS_BOTH(text) text
#define IO_EXPORTS_IMPORT(text)
#define IO_EXPORTS_EXPORT(text)                                   text
#define IO_EXPORTS_BOTH(text)                                     text

#define IO_IMPORT_CHOICE(symbol, name, direction, summary, loses) IO_IMPORTS_##direction("|" name)
#define IO_EXPORT_CHOICE(symbol, name, direction, summary, loses) IO_EXPORTS_##direction("|" name)
#define IO_IMPORT_LINE(symbol, name, direction, summary, loses)   IO_IMPORTS_##direction("\n\n" name ": " summary ".")
#define IO_EXPORT_LINE(symbol, name, direction, summary, loses)                                                        \
    IO_EXPORTS_##direction("\n\n" name ": " summary ". Lost: " loses ".")

// "json|mtrace|…", and a paragraph a format, for the tables of the command line.
#define IO_IMPORT_CHOICES (&(IO_FORMATS(IO_IMPORT_CHOICE))[1])
#define IO_EXPORT_CHOICES (&(IO_FORMATS(IO_EXPORT_CHOICE))[1])
#define IO_IMPORT_HELP    IO_FORMATS(IO_IMPORT_LINE)
#define IO_EXPORT_HELP    IO_FORMATS(IO_EXPORT_LINE)

#endif
