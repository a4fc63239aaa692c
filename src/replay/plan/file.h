// Layout of a plan's file, which the player maps: a header, followed by words, which include the
// ops of the threads and are numbered from the start of the file. If the ops do not fit in memory,
// they are streamed: they are stored in windows, whose words are numbered from PLAN_FIRST_WINDOW.
// Window w is at w % PLAN_WINDOWS of the ring, which is in another file.
#ifndef HEAPTAPE_PLAN_FILE_H
#define HEAPTAPE_PLAN_FILE_H

#include "trace/event/event.h"

#include <stdatomic.h>
#include <stdint.h>

#define PLAN_MAGIC 0x326e616c70747448ull

enum { PLAN_WINDOWS = 8 }; // number of windows in the ring

// Number of the first word in a window. It exceeds the numbers of all words in the plan's own file,
// so a position alone identifies a location. Every thread has reached position 0.
#define PLAN_FIRST_WINDOW ((uint64_t)1 << 40)

struct plan_header {
    uint64_t magic;
    uint64_t words;      // number of words in the file
    uint64_t threads_at; // word number of the array of struct plan_thread
    uint32_t n_threads;
    // 1: also write to all pages of blocks from calloc
    uint32_t touch_zeroed;
    uint64_t preexisting_at; // stream that allocates preexisting blocks
    uint64_t slot_table_entries;
    uint64_t samples;         // number of SAMPLE ops
    uint64_t max_block_bytes; // size of the largest block
    uint64_t n_caches;        // highest thread number in a SWITCH, + 1; 0: no SWITCH
    uint64_t leftovers_at;    // stream that frees the leftovers after the clock has stopped
    // Calls that the player makes, including those for preexisting blocks and leftovers.
    uint64_t by_kind[HT_KIND_LIMIT];
    // 0 unless the plan is streamed.
    uint64_t ring_at;
    uint64_t window_words;    // size of each of the PLAN_WINDOWS windows
    uint64_t streaming_bytes; // size of struct plan_streaming, which precedes the ring in its file
};

struct plan_thread {
    uint64_t first_word; // 0: no ops; streamed: a NEXT_SEGMENT
    uint32_t at_start;   // 1: runs from the start, without being started by another thread
    uint32_t outlives;   // 1: outlives the recording, and so exits after the measured part
};

// The segments of one thread. A segment holds the thread's ops in one window. Fills whole cache
// lines.
struct plan_streaming_thread {
    _Alignas(64) _Atomic uint32_t filled; // futex: number of segments filled
    _Atomic uint32_t sleeps;              // 1: the thread is sleeping on `filled`
    uint64_t segments[PLAN_WINDOWS];      // word number of segment i, at i % PLAN_WINDOWS
    uint64_t n_segments;                  // over all windows
    uint64_t events, live_change;         // since the last segment, as in a COUNT
};

// Head of the ring's file. Coordinates the decoder, which fills windows, with the threads, which
// play them.
struct plan_streaming {
    _Atomic uint32_t freed;          // futex: incremented when the last thread leaves a window
    _Atomic uint32_t decoder_sleeps; // 1: the decoder is waiting on `freed`
    // Futex: set to 1 once the ring is first full or holds the whole workload.
    _Atomic uint32_t ready;
    _Atomic uint32_t failed; // 1: the decoder has failed, so no further segment will follow
    // Number of threads yet to leave window w, at w % PLAN_WINDOWS.
    _Atomic uint32_t left[PLAN_WINDOWS];
    struct plan_streaming_thread threads[]; // n_threads entries
};

#endif
