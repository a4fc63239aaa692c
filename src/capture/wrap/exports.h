// Exported symbols of the library: the functions in the event table and the functions that control
// the library. The build (src/capture/meson.build) preprocesses this file into a version script,
// and into linker options that make the link fail if a wrapper is missing.
#include "trace/event/event_table.h"

// Classes of events whose functions are wrapped.
#define EXPORT_ALLOC(symbol)  EXPORT(symbol)
#define EXPORT_FREE(symbol)   EXPORT(symbol)
#define EXPORT_RESIZE(symbol) EXPORT(symbol)
#define EXPORT_THREAD(symbol) EXPORT(symbol)
#define EXPORT_MARK(symbol)   EXPORT(symbol)
#define EXPORT_MAP(symbol)    EXPORT(symbol)
#define EXPORT_POOL(symbol)   EXPORT(symbol)
#define EXPORT_HALF(symbol)
#define EXPORT_META(symbol)

#define EXPORT_ROW(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                    \
    EXPORT_##class(symbol)

#define EXPORT_CONTROL                                                                             \
    EXPORT("mmap64")                                                                               \
    EXPORT("prctl")                                                                                \
    EXPORT("syscall")                                                                              \
    EXPORT("_exit")                                                                                \
    EXPORT("_Exit")                                                                                \
    EXPORT("dlopen")                                                                               \
    EXPORT("dlmopen")                                                                              \
    EXPORT("dlclose")                                                                              \
    EXPORT("__libc_start_main")                                                                    \
    EXPORT("heaptape_start")                                                                       \
    EXPORT("heaptape_stop")                                                                        \
    EXPORT("heaptape_pause")                                                                       \
    EXPORT("heaptape_resume")                                                                      \
    EXPORT("heaptape_unpause")                                                                     \
    EXPORT("heaptape_sync")                                                                        \
    EXPORT("heaptape_reset")                                                                       \
    EXPORT("heaptape_status")                                                                      \
    EXPORT("heaptape_attach")                                                                      \
    EXPORT("heaptape_end")                                                                         \
    EXPORT("heaptape_redirect")                                                                    \
    EXPORT("heaptape_entries")                                                                     \
    EXPORT("heaptape_recorder")                                                                    \
    EXPORT("heaptape_list")                                                                        \
    EXPORT("heaptape_clear")                                                                       \
    EXPORT("heaptape_thread")
