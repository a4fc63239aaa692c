// The table of foreign formats. The registry, the files that are compiled, the choices of `import
// --format` and `export --format`, their help and their man pages are derived from it.
//
// FORMATS_TABLE(X) calls X(symbol, name, direction, what) for each format:
//   symbol     src/formats/format_SYMBOL.c defines `const struct format format_SYMBOL`
//   name       the name on the command line
//   direction  IMPORT, EXPORT or BOTH
//   what       one clause for --help that describes the files; docs/man/ lists the losses
#pragma once

// clang-format off
#define FORMATS_TABLE(X) \
    X(mtrace, "mtrace", BOTH, \
      "raw trace of glibc's dj/malloc branch") \
    X(wl, "wl", BOTH, \
      "workload of glibc's dj/malloc branch, for trace_run") \
    X(tcmalloc, "tcmalloc", BOTH, \
      "raw trace of gperftools' branch wip-malloc-tracing") \
    X(tcmalloc_replay, "tcmalloc-replay", BOTH, \
      "instructions of gperftools' malloc-trace-replay") \
    X(logalloc, "logalloc", BOTH, \
      "log of Firefox's logalloc") \
    X(logalloc_munged, "logalloc-munged", BOTH, \
      "log of Firefox's logalloc after logalloc_munge.py") \
    X(android, "android", BOTH, \
      "text trace of Android's memory_replay") \
    X(heaptrack, "heaptrack", IMPORT, \
      "data file of heaptrack, or the file of heaptrack --raw") \
    X(mallocbench, "mallocbench", IMPORT, \
      "recording (.ops) of WebKit's MallocBench") \
    X(ctf, "ctf", EXPORT, \
      "Common Trace Format 1.8, for babeltrace2 and Trace Compass") \
    X(dhat, "dhat", EXPORT, \
      "totals by call stack, for Valgrind's dh_view.html and Firefox's profiler") \
    X(perfetto, "perfetto", EXPORT, \
      "heap profile over time, for ui.perfetto.dev") \
    X(c, "c", EXPORT, \
      "C program that makes the calls, to report a problem") \
    X(json, "json", BOTH, \
      "JSON lines, as 'heaptape dump --format json' prints")
// clang-format on

// These macros expand to their arguments if formats with this direction can be read or written,
// respectively.
#define FORMATS_IF_READ_IMPORT(...) __VA_ARGS__
#define FORMATS_IF_READ_EXPORT(...)
#define FORMATS_IF_READ_BOTH(...) __VA_ARGS__
#define FORMATS_IF_WRITTEN_IMPORT(...)
#define FORMATS_IF_WRITTEN_EXPORT(...)                       __VA_ARGS__
#define FORMATS_IF_WRITTEN_BOTH(...)                         __VA_ARGS__

#define FORMATS_IMPORT_CHOICE(symbol, name, direction, what) FORMATS_IF_READ_##direction("|" name)
#define FORMATS_EXPORT_CHOICE(symbol, name, direction, what)                                       \
    FORMATS_IF_WRITTEN_##direction("|" name)
#define FORMATS_IMPORT_WORD(symbol, name, direction, what)                                         \
    FORMATS_IF_READ_##direction({name, what}, )
#define FORMATS_EXPORT_WORD(symbol, name, direction, what)                                         \
    FORMATS_IF_WRITTEN_##direction({name, what}, )

// The choices, in the form "|mtrace|wl|…" without the first character, and a row of struct
// command_word for each format.
#define FORMATS_IMPORT_CHOICES (&(FORMATS_TABLE(FORMATS_IMPORT_CHOICE))[1])
#define FORMATS_EXPORT_CHOICES (&(FORMATS_TABLE(FORMATS_EXPORT_CHOICE))[1])
#define FORMATS_IMPORT_WORDS   FORMATS_TABLE(FORMATS_IMPORT_WORD)
#define FORMATS_EXPORT_WORDS   FORMATS_TABLE(FORMATS_EXPORT_WORD)
