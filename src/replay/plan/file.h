// Layout of the plan's file, which the player maps: a header, then words, numbered from the start of the file. The ops
// of the threads are among these words. If they do not fit into memory, they are streamed instead: they are in windows,
// whose words are numbered from PLAN_FIRST_WINDOW. Window w is at w % PLAN_WINDOWS in another file, the ring.
#ifndef HEAPTAPE_PLAN_FILE_H
#define HEAPTAPE_PLAN_FILE_H

#include "trace/event/event.h"

#include <stdatomic.h>
#include <stdint.h>

#define PLAN_MAGIC 0x326e616c70747448ull

enum { PLAN_WINDOWS = 8 }; // of the ring

// Number of the first word in a window: more than any in the plan's own file, so that a position tells where it is, and
// all threads have reached position 0.
#define PLAN_FIRST_WINDOW ((uint64_t)1 << 40)

struct plan_header {
    uint64_t magic;
    uint64_t words;      // of the file
    uint64_t threads_at; // word number of the array of struct plan_thread
    uint32_t n_threads;
    uint32_t touch_zeroed; // 1: write to all pages of calloc's blocks, as to those of other blocks
    uint64_t preexisting_at;     // stream that allocates the blocks that exist before the start
    uint64_t slot_table_entries; // of the player's slot table
    uint64_t samples;            // SAMPLE ops
    uint64_t max_block_bytes;    // of the largest block that is requested
    uint64_t n_caches;           // highest thread number of a SWITCH + 1; 0: there is no SWITCH
    uint64_t
        leftovers_at; // stream that frees what the workload leaves, played after the clock has stopped
    uint64_t by_kind[HT_KIND_LIMIT]; // calls that the player makes, those of the leftovers included
    // Of a streamed plan, otherwise 0.
    uint64_t ring_at; // words from the start of this file to the ring, where the player maps it
    uint64_t window_words;    // of each of its PLAN_WINDOWS windows
    uint64_t streaming_bytes; // of the streaming file before the ring: a struct plan_streaming
};

struct plan_thread {
    uint64_t first_word; // 0: the thread does nothing. Of a streamed plan: a NEXT_SEGMENT
    uint32_t at_start;   // 1: runs from the start; no other thread starts it
    uint32_t
        outlives; // 1: it had not ended when the recording did, and exits when the measured part is over
};

// The segments of one thread: its ops in each window. On cache lines of its own.
struct plan_streaming_thread {
    _Alignas(64) _Atomic uint32_t filled; // futex: number of segments filled
    _Atomic uint32_t sleeps;              // 1: the thread sleeps on it
    uint64_t segments[PLAN_WINDOWS];      // first word of segment i, at i % PLAN_WINDOWS
    uint64_t n_segments;                  // of all windows
    uint64_t events, live_change;         // behind the last segment: as of a COUNT
};

// The head of the streaming file: how the decoder, which fills windows, and the threads, which play them, take turns.
struct plan_streaming {
    _Atomic uint32_t freed;          // futex: grows when the last thread leaves a window
    _Atomic uint32_t decoder_sleeps; // 1: the decoder waits for that
    _Atomic uint32_t
        ready; // futex: 1 when the ring is full for the first time, or holds the whole workload
    _Atomic uint32_t failed; // 1: the decoder failed; there are no more segments
    _Atomic uint32_t
        left[PLAN_WINDOWS]; // threads that have not left window w yet, at w % PLAN_WINDOWS
    struct plan_streaming_thread threads[]; // n_threads
};

#endif
