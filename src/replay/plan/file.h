// Layout of a plan's file, which the player maps. The file contains a header and 64-bit words,
// which include the ops of the threads. Words are numbered from the start of the file. If the ops
// do not fit in memory, they are stored in windows and streamed. The words of the windows are
// numbered from PLAN_FIRST_WINDOW. A ring in another file contains window w at index w %
// PLAN_WINDOWS.
#pragma once

#include "trace/event/event.h"

#include <stdatomic.h>
#include <stdint.h>

#define PLAN_MAGIC 0x326e616c70747448ull

enum { PLAN_WINDOWS = 8 }; // number of windows in the ring

// Number of the first word of window 0. The number is higher than all word numbers in the plan's
// own file, so no word number occurs in both files.
#define PLAN_FIRST_WINDOW ((uint64_t)1 << 40)

struct plan_header {
    uint64_t magic;
    uint64_t words;      // number of words in the file
    uint64_t threads_at; // word number of the array of struct plan_thread
    uint32_t n_threads;
    // 1 if the player also writes to all pages of blocks from calloc.
    uint32_t touch_zeroed;
    // 1 if a START_THREAD or COUPLE waits until earlier threads have exited. 0 if the wait might
    // never end: a thread has calls after its exit, or threads wait for each other at a snapshot.
    uint64_t waits_for_exits;
    uint64_t preexisting_at; // stream that allocates preexisting blocks
    uint64_t slot_table_entries;
    uint64_t samples;         // number of SAMPLE ops
    uint64_t max_block_bytes; // size of the largest block
    uint64_t n_caches;        // highest thread number in a SWITCH plus 1; 0 if there is no SWITCH
    uint64_t leftovers_at;    // stream that frees the leftovers after the clock has stopped
    // Number of calls that the player makes, by kind, including the calls for preexisting blocks
    // and leftovers.
    uint64_t by_kind[HT_KIND_LIMIT];
    // The following members are 0 unless the plan is streamed.
    uint64_t ring_at;
    uint64_t window_words; // size of each of the PLAN_WINDOWS windows
    // Size of struct plan_streaming, which precedes the ring in the ring's file.
    uint64_t streaming_bytes;
};

struct plan_thread {
    // 0 if the thread has no ops; in a streamed plan, the word of a NEXT_SEGMENT
    uint64_t first_word;
    // 1 if the thread runs from the start; 0 if another thread starts it
    uint32_t at_start;
    // 1 if the thread outlives the recording, and therefore exits after the measured part
    uint32_t outlives;
};

// The segments of one thread. A segment contains the thread's ops in one window. Fills whole cache
// lines.
struct plan_streaming_thread {
    _Alignas(64) _Atomic uint32_t filled; // futex: number of segments filled
    _Atomic uint32_t sleeps;              // 1 while the thread is sleeping on `filled`
    uint64_t segments[PLAN_WINDOWS];      // word number of segment i, at index i % PLAN_WINDOWS
    uint64_t n_segments;                  // number of segments in all windows
    uint64_t events, live_change;         // since the last segment, as in a COUNT
};

// Head of the ring's file. Synchronizes the decoder, which fills windows, with the threads that
// play the windows.
struct plan_streaming {
    _Atomic uint32_t freed;          // futex: incremented when the last thread leaves a window
    _Atomic uint32_t decoder_sleeps; // 1 while the decoder is waiting on `freed`
    // Futex. Set to 1 when the ring is full for the first time or contains the whole workload.
    _Atomic uint32_t ready;
    _Atomic uint32_t failed; // 1 if the decoder has failed, so no more segments follow
    // Number of threads that have not yet left window w, at index w % PLAN_WINDOWS.
    _Atomic uint32_t left[PLAN_WINDOWS];
    struct plan_streaming_thread threads[]; // array with n_threads entries
};
