#include "record/processes/software.h"

#include <stddef.h>
#include <string.h>

const struct software_allocator_info software_allocators[SOFTWARE_ALLOCATORS] = {
    [SOFTWARE_GLIBC] = {"glibc", {"libc.so.6", "libc-2."}, {NULL}},
    [SOFTWARE_JEMALLOC] = {"jemalloc", {"libjemalloc"}, {"mallctl", "je_mallctl"}},
    [SOFTWARE_TCMALLOC] = {"tcmalloc",
                           {"libtcmalloc"},
                           {"tc_malloc", "MallocExtension_Internal_GetNumericProperty"}},
    [SOFTWARE_MIMALLOC] = {"mimalloc", {"libmimalloc"}, {"mi_malloc"}},
    // The loader of musl, which programs call by its first name, is a link to musl's libc.so.
    [SOFTWARE_MUSL] = {"musl", {"ld-musl-", "libc.so"}, {NULL}},
    [SOFTWARE_OTHER_ALLOCATOR] = {"other", {NULL}, {NULL}},
    [SOFTWARE_UNKNOWN_ALLOCATOR] = {"unknown", {NULL}, {NULL}},
};

const struct software_runtime software_runtimes[SOFTWARE_RUNTIMES] = {
    // No base name begins with '/', so no executable has the name of this row.
    {"Go", "/", NULL, true, "see GODEBUG=gctrace=1, and limit the heap with GOMEMLIMIT", NULL},
    {"Java", "java", "libjvm.so", true,
     "see its size with 'jcmd PID GC.heap_info' and the classes that fill it with 'jcmd PID "
     "GC.class_histogram', and limit it with -Xmx",
     "start the JVM with -XX:+PreserveFramePointer, and have it write /tmp/perf-PID.map before the "
     "recording ends: 'jcmd PID Compiler.perfmap' (JDK 17 and later) or perf-map-agent"},
    {"Node.js", "node", "libnode.so", true,
     "write a heap snapshot (--heapsnapshot-signal=SIGUSR2), and limit the heap with "
     "--max-old-space-size",
     "record 'node --perf-basic-prof --interpreted-frames-native-stack'"},
    {"Python", "python", "libpython", false,
     "call sys._debugmallocstats() to see how much of it is free, find the lines that allocate "
     "with tracemalloc, or record with PYTHONMALLOC=malloc, so that small objects are blocks of "
     "malloc",
     "record it with Python 3.11 to 3.13 with the GIL, or record 'python3 -X perf' (Python 3.12 "
     "and later), and set PYTHONMALLOC=malloc to record small objects. Before Python 3.11, find "
     "the lines with tracemalloc instead: set PYTHONTRACEMALLOC=5, and compare two snapshots "
     "(tracemalloc.Snapshot.compare_to)"},
    {".NET", "dotnet", "libcoreclr.so", true, "see 'dotnet-gcdump collect -p PID'", NULL},
    {"Ruby", "ruby", "libruby", true, "see GC.stat", NULL},
    {"PHP", "php", NULL, false,
     "record with USE_ZEND_ALLOC=0, so that its blocks are blocks of malloc", NULL},
    {"Erlang", "beam.smp", NULL, true, "see erlang:memory()", NULL},
    {"Julia", "julia", NULL, true, "see Base.summarysize, and limit the heap with --heap-size-hint",
     NULL},
    {"Mono", "mono-sgen", "libmonosgen", true,
     "limit it with MONO_GC_PARAMS=max-heap-size=SIZE, and see MONO_LOG_LEVEL=debug "
     "MONO_LOG_MASK=gc",
     NULL},
    {"Racket", "racket", NULL, true,
     "see (current-memory-use) and 'racket -W debug@GC', and limit it with custodian-limit-memory",
     NULL},
    {"SBCL", "sbcl", NULL, true, "see (room), and limit the heap with --dynamic-space-size", NULL},
};

static bool starts_with(const char *text, const char *start)
{
    return start && strncmp(text, start, strlen(start)) == 0;
}

enum software_allocator software_allocator_of(const char *library, const char **name)
{
    const char *base = library ? basename(library) : NULL;
    *name = base;
    for (unsigned i = 0; base && i < SOFTWARE_ALLOCATORS; i++) {
        const struct software_allocator_info *a = &software_allocators[i];
        if (!starts_with(base, a->libraries[0]) && !starts_with(base, a->libraries[1]))
            continue;
        *name = a->name;
        return i;
    }
    return SOFTWARE_OTHER_ALLOCATOR;
}

const struct software_runtime *software_go(void)
{
    return &software_runtimes[0];
}

const struct software_runtime *software_runtime_of(const char *path)
{
    const char *base = path ? basename(path) : NULL;
    for (unsigned i = 0; base && i < SOFTWARE_RUNTIMES; i++) {
        if (starts_with(base, software_runtimes[i].program))
            return &software_runtimes[i];
    }
    return NULL;
}

bool software_is_library(const struct software_runtime *r, const char *path)
{
    return starts_with(basename(path), r->library);
}
