#include "trace/event/event.h"

#include <string.h>

#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    [wire] = {name, symbol, HT_CLASS_##class, HT_STAMP_##stamp, HT_FORM_##form, fields},
const struct event_info event_infos[HT_KIND_LIMIT] = {HT_EVENT_TABLE(HT_X)};
#undef HT_X

#define HT_X(tag, SYMBOL, name) [HT_NOTE_##SYMBOL] = name,
const char *const event_note_names[HT_NOTES] = {HT_NOTE_TABLE(HT_X)};
#undef HT_X

const char *const event_path_names[HT_PATHS] = {
    [HT_PATH_THREAD_CACHE] = "thread_cache",
    [HT_PATH_CPU_CACHE] = "cpu_cache",
    [HT_PATH_CPU_CACHE_2] = "cpu_cache_2",
    [HT_PATH_SBRK] = "sbrk",
    [HT_PATH_MMAP] = "mmap",
    [HT_PATH_MUNMAP] = "munmap",
    [HT_PATH_MALLOC_FREE] = "malloc_free",
    [HT_PATH_HOOK] = "hook",
    [HT_PATH_UNSORTED_ADD] = "unsorted_add",
    [HT_PATH_UNSORTED_REMOVE] = "unsorted_remove",
    [HT_PATH_UNSORTED_EMPTY] = "unsorted_empty",
    [HT_PATH_FASTBIN_ADD] = "fastbin_add",
    [HT_PATH_FASTBIN_REMOVE] = "fastbin_remove",
    [HT_PATH_CONSOLIDATE] = "consolidate",
};

int event_kind_by_name(const char *name)
{
    for (int kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (event_infos[kind].name && strcmp(event_infos[kind].name, name) == 0)
            return kind;
    }
    return -1;
}
