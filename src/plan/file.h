// The plan as the player maps it: a header, then words that the header's numbers count from the start of the file. What
// threads do stands there too, or, when that is too much, in a feed: another file, whose words follow in number.
#ifndef HEAPTAPE_PLAN_FILE_H
#define HEAPTAPE_PLAN_FILE_H

#include "event/event.h"

#include <stdatomic.h>
#include <stdint.h>

#define PLAN_MAGIC 0x316e616c70747448ull

enum { PLAN_WINDOWS = 8 }; // of a feed

struct plan_header {
    uint64_t magic;
    uint64_t words;      // of the file
    uint64_t threads_at; // word number of the array of struct plan_thread
    uint32_t n_threads;
    uint32_t touch_zeroed;           // 1: pages that calloc zeroed are written to like others
    uint64_t preexisting_at;         // stream of the blocks that are there before the start
    uint64_t places;                 // entries of the player's table
    uint64_t samples;                // SAMPLE ops
    uint64_t n_caches;               // highest thread that a SWITCH names + 1; 0: there is none
    uint64_t rest_at;                // stream that gives up what is left when the clock has stopped
    uint64_t by_kind[HT_KIND_LIMIT]; // calls that are made, those of the rest included
    // Of a plan that is fed; 0 of one that is not. The ring is PLAN_WINDOWS windows.
    uint64_t ring_at;      // word number of the ring, behind all words of this file
    uint64_t window_words; // of the ring
    uint64_t feed_bytes;   // of the feed's file before the ring: a struct plan_feed
};

struct plan_thread {
    uint64_t first_word; // 0: a thread that does nothing. Of a plan that is fed: a MORE
    uint32_t at_start;   // not born by another thread
    uint32_t reserved;
};

// What of the feed a thread has got. On two cache lines of its own.
struct plan_feed_thread {
    _Alignas(64) _Atomic uint32_t filled; // futex: segments handed over
    _Atomic uint32_t sleeps;              // 1: the thread sleeps on it
    uint64_t segments[PLAN_WINDOWS]; // number of the first word of segment i, at i % PLAN_WINDOWS. Word numbers of a
                                     // feed go on growing when the ring is used again
};

// The head of a feed: between heaptape, which fills the windows, and the threads that play them.
struct plan_feed {
    _Atomic uint32_t freed;              // futex: grows when the last thread leaves a window
    _Atomic uint32_t reader_sleeps;      // 1: heaptape waits for that
    _Atomic uint32_t ready;              // futex: 1 when the ring is full for the first time, or the workload is over
    _Atomic uint32_t failed;             // 1: there will be no more
    _Atomic uint32_t left[PLAN_WINDOWS]; // threads that have not yet left window w, at w % PLAN_WINDOWS
    struct plan_feed_thread threads[];   // n_threads
};

#endif
