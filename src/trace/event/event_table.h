// The table of event kinds. The enum, names, field masks, codec, dump, import, wrapper lists, the
// table in docs/reference/trace-format.md and a round-trip test for each row are derived from this
// table.
//
// HT_EVENT_TABLE(X) calls X(wire, SYMBOL, name, symbol, class, stamp, form, fields) for each kind:
//   wire    number in files, never reused. 4 to 26 can have a one-word form with this tag;
//           0 to 3 are tags of the codec (src/trace/codec.h), 27 to 31 tags of the notes below.
//           Kinds of calls that the player makes are below 64, other ops of the player above
//           (src/replay/plan/ops.h)
//   SYMBOL  name in enum event_kind after HT_
//   name    name in dump, JSON and import
//   symbol  function wrapped by the capture library, as the linker names it, or ""
//   class   name in enum event_class after HT_CLASS_
//   stamp   BEFORE, AFTER or BOTH: when the timestamp is taken. A free is stamped before the real
//           call, an allocation after it
//   form    one-word record: SIZED (16-bit size, 29-bit address relative to the base), PLAIN
//           (45-bit address) or NONE. A one-word calloc has the size of one element; the count is 1
//           unless the note `count` precedes the record
//   fields  HT_F_* of a record
//   ...     names of arguments that differ from the names of their fields, and signed arguments:
//           .size, .count, .align or .value = HT_NAMED or HT_SIGNED
#pragma once

// Fields in the order of a LONG record.
#define HT_F_PTR                                                                                   \
    0x01u // address released or named: free's pointer, realloc's old pointer, munmap's address
#define HT_F_SIZE            0x02u // requested bytes; calloc, reallocarray: bytes of one element
#define HT_F_COUNT           0x04u // number of elements
#define HT_F_ALIGN           0x08u // requested alignment
#define HT_F_RESULT          0x10u // address returned, 0 if the call failed
#define HT_F_VALUE           0x20u // number whose meaning depends on the kind
#define HT_F_TEXT            0x40u // bytes of text

#define HT_ALLOCATES         (HT_F_SIZE | HT_F_RESULT)
#define HT_ALLOCATES_COUNT   (HT_F_COUNT | HT_ALLOCATES)
#define HT_ALLOCATES_ALIGNED (HT_F_ALIGN | HT_ALLOCATES)
#define HT_RELEASES_SIZED    (HT_F_PTR | HT_F_SIZE)
#define HT_RELEASES_ALIGNED  (HT_F_PTR | HT_F_ALIGN)

// clang-format off
#define HT_EVENT_TABLE(X) \
    X(  4, MALLOC,                  "malloc",             "malloc",             ALLOC,  AFTER,  SIZED, HT_ALLOCATES) \
    X(  5, FREE,                    "free",               "free",               FREE,   BEFORE, PLAIN, HT_F_PTR) \
    X(  6, CALLOC,                  "calloc",             "calloc",             ALLOC,  AFTER,  SIZED, HT_ALLOCATES_COUNT) \
    X(  7, REALLOC_BEGIN,           "realloc.begin",      "",                   HALF,   BEFORE, PLAIN, HT_F_PTR) \
    X(  8, REALLOC,                 "realloc",            "realloc",            RESIZE, BOTH,   SIZED, HT_F_PTR | HT_ALLOCATES) \
    X(  9, REALLOCARRAY,            "reallocarray",       "reallocarray",       RESIZE, BOTH,   NONE,  HT_F_PTR | HT_ALLOCATES_COUNT) \
    X( 10, MEMALIGN,                "memalign",           "memalign",           ALLOC,  AFTER,  NONE,  HT_ALLOCATES_ALIGNED) \
    X( 11, ALIGNED_ALLOC,           "aligned_alloc",      "aligned_alloc",      ALLOC,  AFTER,  NONE,  HT_ALLOCATES_ALIGNED) \
    X( 12, POSIX_MEMALIGN,          "posix_memalign",     "posix_memalign",     ALLOC,  AFTER,  NONE,  HT_ALLOCATES_ALIGNED) \
    X( 13, VALLOC,                  "valloc",             "valloc",             ALLOC,  AFTER,  SIZED, HT_ALLOCATES) \
    X( 14, PVALLOC,                 "pvalloc",            "pvalloc",            ALLOC,  AFTER,  SIZED, HT_ALLOCATES) \
    X( 15, FREE_SIZED,              "free_sized",         "free_sized",         FREE,   BEFORE, SIZED, HT_RELEASES_SIZED) \
    X( 16, FREE_ALIGNED_SIZED,      "free_aligned_sized", "free_aligned_sized", FREE,   BEFORE, NONE,  HT_RELEASES_SIZED | HT_F_ALIGN) \
    X( 17, NEW,                     "new",                "_Znwm",              ALLOC,  AFTER,  SIZED, HT_ALLOCATES) \
    X( 18, NEW_ARRAY,               "new[]",              "_Znam",              ALLOC,  AFTER,  SIZED, HT_ALLOCATES) \
    X( 19, DELETE,                  "delete",             "_ZdlPv",             FREE,   BEFORE, PLAIN, HT_F_PTR) \
    X( 20, DELETE_ARRAY,            "delete[]",           "_ZdaPv",             FREE,   BEFORE, PLAIN, HT_F_PTR) \
    X( 21, DELETE_SIZED,            "delete(size)",       "_ZdlPvm",            FREE,   BEFORE, SIZED, HT_RELEASES_SIZED) \
    X( 22, DELETE_ARRAY_SIZED,      "delete[](size)",     "_ZdaPvm",            FREE,   BEFORE, SIZED, HT_RELEASES_SIZED) \
    X( 23, NEW_NOTHROW,             "new(nothrow)",       "_ZnwmRKSt9nothrow_t", ALLOC, AFTER,  SIZED, HT_ALLOCATES) \
    X( 24, NEW_ARRAY_NOTHROW,       "new[](nothrow)",     "_ZnamRKSt9nothrow_t", ALLOC, AFTER,  SIZED, HT_ALLOCATES) \
    X( 32, NEW_ALIGNED,             "new(align)",         "_ZnwmSt11align_val_t", ALLOC, AFTER, NONE,  HT_ALLOCATES_ALIGNED) \
    X( 33, NEW_ARRAY_ALIGNED,       "new[](align)",       "_ZnamSt11align_val_t", ALLOC, AFTER, NONE,  HT_ALLOCATES_ALIGNED) \
    X( 34, NEW_ALIGNED_NOTHROW,     "new(align,nothrow)", "_ZnwmSt11align_val_tRKSt9nothrow_t", ALLOC, AFTER, NONE, HT_ALLOCATES_ALIGNED) \
    X( 35, NEW_ARRAY_ALIGNED_NOTHROW, "new[](align,nothrow)", "_ZnamSt11align_val_tRKSt9nothrow_t", ALLOC, AFTER, NONE, HT_ALLOCATES_ALIGNED) \
    X( 36, DELETE_NOTHROW,          "delete(nothrow)",    "_ZdlPvRKSt9nothrow_t", FREE, BEFORE, NONE,  HT_F_PTR) \
    X( 37, DELETE_ARRAY_NOTHROW,    "delete[](nothrow)",  "_ZdaPvRKSt9nothrow_t", FREE, BEFORE, NONE,  HT_F_PTR) \
    X( 38, DELETE_ALIGNED,          "delete(align)",      "_ZdlPvSt11align_val_t", FREE, BEFORE, NONE, HT_RELEASES_ALIGNED) \
    X( 39, DELETE_ARRAY_ALIGNED,    "delete[](align)",    "_ZdaPvSt11align_val_t", FREE, BEFORE, NONE, HT_RELEASES_ALIGNED) \
    X( 40, DELETE_SIZED_ALIGNED,    "delete(size,align)", "_ZdlPvmSt11align_val_t", FREE, BEFORE, NONE, HT_RELEASES_SIZED | HT_F_ALIGN) \
    X( 41, DELETE_ARRAY_SIZED_ALIGNED, "delete[](size,align)", "_ZdaPvmSt11align_val_t", FREE, BEFORE, NONE, HT_RELEASES_SIZED | HT_F_ALIGN) \
    X( 42, DELETE_ALIGNED_NOTHROW,  "delete(align,nothrow)", "_ZdlPvSt11align_val_tRKSt9nothrow_t", FREE, BEFORE, NONE, HT_RELEASES_ALIGNED) \
    X( 43, DELETE_ARRAY_ALIGNED_NOTHROW, "delete[](align,nothrow)", "_ZdaPvSt11align_val_tRKSt9nothrow_t", FREE, BEFORE, NONE, HT_RELEASES_ALIGNED) \
    X( 64, MMAP,                    "mmap",               "mmap",               MAP,    AFTER,  NONE,  HT_F_PTR | HT_ALLOCATES | HT_F_TEXT) \
    X( 65, MUNMAP,                  "munmap",             "munmap",             MAP,    BEFORE, NONE,  HT_RELEASES_SIZED) \
    X( 66, MREMAP,                  "mremap",             "mremap",             MAP,    BOTH,   NONE,  HT_F_PTR | HT_ALLOCATES_COUNT, \
      .size = HT_NAMED("old_size"), .count = HT_NAMED("new_size")) \
    X( 67, SBRK,                    "sbrk",               "sbrk",               MAP,    AFTER,  NONE,  HT_F_VALUE | HT_F_RESULT, .value = HT_SIGNED("increment")) \
    X( 68, BRK,                     "brk",                "brk",                MAP,    AFTER,  NONE,  HT_F_PTR) \
    X( 80, THREAD_CREATE,           "thread.create",      "pthread_create",     THREAD, BEFORE, NONE,  HT_F_VALUE, .value = HT_NAMED("thread")) \
    X( 81, THREAD_START,            "thread.start",       "",                   THREAD, AFTER,  NONE,  HT_F_VALUE | HT_F_TEXT, .value = HT_NAMED("parent")) \
    X( 82, THREAD_END,              "thread.end",         "",                   THREAD, BEFORE, NONE,  HT_F_TEXT) \
    X( 96, MARK,                    "mark",               "heaptape_mark",      MARK,   BEFORE, NONE,  HT_F_TEXT) \
    X( 97, MALLOC_STATS,            "malloc_stats",       "malloc_stats",       MARK,   BEFORE, NONE,  0) \
    X( 98, MALLOC_INFO,             "malloc_info",        "malloc_info",        MARK,   BEFORE, NONE,  0) \
    X( 99, MALLINFO,                "mallinfo",           "mallinfo",           MARK,   BEFORE, NONE,  0) \
    X(100, MALLINFO2,               "mallinfo2",          "mallinfo2",          MARK,   BEFORE, NONE,  0) \
    X(101, MALLOC_TRIM,             "malloc_trim",        "malloc_trim",        MARK,   BEFORE, NONE,  HT_F_VALUE, .value = HT_NAMED("pad")) \
    X(102, MALLOPT,                 "mallopt",            "mallopt",            MARK,   BEFORE, NONE,  HT_F_VALUE | HT_F_COUNT, \
      .count = HT_SIGNED("param"), .value = HT_SIGNED("value")) \
    X(103, MALLCTL,                 "mallctl",            "mallctl",            MARK,   BEFORE, NONE,  HT_F_TEXT) \
    X(104, POOL_ALLOC,              "pool.alloc",         "heaptape_pool_alloc", POOL, AFTER,  NONE,  HT_ALLOCATES_ALIGNED, .align = HT_NAMED("pool")) \
    X(105, POOL_FREE,               "pool.free",          "heaptape_pool_free", POOL,   BEFORE, NONE,  HT_RELEASES_SIZED | HT_F_ALIGN, .align = HT_NAMED("pool")) \
    X(106, POOL_RESET,              "pool.reset",         "heaptape_pool_reset", POOL,  BEFORE, NONE,  HT_F_SIZE | HT_F_ALIGN, .align = HT_NAMED("pool")) \
    X(112, WAITED,                  "heaptape.waited",    "",                   META,   AFTER,  NONE,  HT_F_VALUE, .value = HT_NAMED("backpressure_ns")) \
    X(113, LOST,                    "heaptape.lost",      "",                   META,   AFTER,  NONE,  HT_F_VALUE, .value = HT_NAMED("lost_records")) \
    X(114, STACK,                   "heaptape.stack",     "",                   META,   BEFORE, NONE,  HT_F_VALUE | HT_F_TEXT, .value = HT_NAMED("site")) \
    X(115, MODULE,                  "heaptape.module",    "",                   META,   BEFORE, NONE,  HT_RELEASES_SIZED | HT_F_VALUE | HT_F_TEXT, .value = HT_NAMED("offset")) \
    X(116, FRAME,                   "heaptape.frame",     "",                   META,   BEFORE, NONE,  HT_RELEASES_SIZED | HT_F_VALUE, .size = HT_NAMED("outer"), .value = HT_NAMED("site")) \
    X(117, RESIDENCY,               "heaptape.residency", "",                   META,   BEFORE, NONE,  HT_RELEASES_SIZED | HT_F_COUNT | HT_F_ALIGN | HT_F_VALUE, \
      .count = HT_NAMED("resident_bytes"), .align = HT_NAMED("used_bytes"), .value = HT_NAMED("front_bytes")) \
    X(118, FRAMES,                  "heaptape.frames",    "",                   META,   BEFORE, NONE,  HT_F_SIZE | HT_F_TEXT, .size = HT_NAMED("outer")) \
    X(119, RESIDENCY_STEP,          "heaptape.residency_step", "",              META,   BEFORE, NONE,  HT_RELEASES_SIZED | HT_F_VALUE, .value = HT_NAMED("used_bytes")) \
    X(120, PREEXISTING,             "preexisting",        "",                   ALLOC,  BEFORE, NONE,  HT_ALLOCATES) \
    X(121, RESIDENCY_UNCHANGED,     "heaptape.residency_unchanged", "",         META,   BEFORE, NONE,  HT_F_PTR | HT_F_COUNT | HT_F_VALUE, \
      .count = HT_NAMED("used_bytes"), .value = HT_NAMED("age"))
// clang-format on

// Notes: optional numbers of a record, each in a word before the record. HT_NOTE_TABLE(X) calls
// X(tag, SYMBOL, name): tag of the word, 27 to 31 and never reused, symbol after HT_NOTE_, name in
// dump and JSON.
//   allocator  allocator of the called function, or 0 for the process's malloc: enum
//           entries_family (src/record/entries/plan.h)
//   count   elements of a SIZED calloc if not 1; decoded into event.count, so it has no name
//   site    call site of an allocation or pool allocation: a number defined by a heaptape.frames,
//           heaptape.frame or heaptape.stack
//   usable  malloc_usable_size of the block: after an allocation, before a free
//   path    how glibc's malloc served the call, one bit per event_path; only from mtrace
#define HT_NOTE_TABLE(X)                                                                           \
    X(27, ALLOCATOR, "allocator")                                                                  \
    X(28, COUNT, "")                                                                               \
    X(29, PATH, "path")                                                                            \
    X(30, SITE, "site")                                                                            \
    X(31, USABLE, "usable")
// clang-format on
