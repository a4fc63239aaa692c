// What reading and writing wl files share. docs/reference/foreign-formats.md, "wl".
#ifndef HEAPTAPE_FORMATS_FORMAT_WL_H
#define HEAPTAPE_FORMATS_FORMAT_WL_H

#include "formats/export.h"
#include "formats/import.h"

enum wl_op {
    WL_NOP = 0,
    WL_DONE = 1,
    WL_MALLOC = 2,
    WL_CALLOC = 3,
    WL_REALLOC = 4,
    WL_FREE = 5,
    WL_SYNC_W = 6,
    WL_SYNC_R = 7,
    WL_ALLOC_PTRS = 8,
    WL_ALLOC_SYNCS = 9,
    WL_NTHREADS = 10,
    WL_START_THREAD = 11,
    WL_MEMALIGN = 12,
    WL_VALLOC = 13,
    WL_PVALLOC = 14,
    WL_POSIX_MEMALIGN = 15,
};

enum { WL_VARINT_BYTES = 10 };

int wl_import(struct import *im);

#endif
