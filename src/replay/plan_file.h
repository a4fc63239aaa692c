// The plan as the player maps it: a header, then words that the header's numbers count from the start of the file.
#ifndef HEAPTAPE_REPLAY_PLAN_FILE_H
#define HEAPTAPE_REPLAY_PLAN_FILE_H

#include "event/event.h"

#include <stdint.h>

#define PLAN_MAGIC 0x316e616c70747448ull

struct plan_header {
    uint64_t magic;
    uint64_t words;      // of the file
    uint64_t threads_at; // word number of the array of struct plan_thread
    uint32_t n_threads;
    uint32_t multi_threaded;         // more than thread 0 runs
    uint64_t preexisting_at;         // stream of the blocks that are there before the start
    uint64_t places;                 // entries of the player's table
    uint64_t samples;                // SAMPLE ops
    uint64_t n_caches;               // highest thread that a SWITCH names + 1; 0: there is none
    uint64_t rest_at;                // stream that gives up what is left when the clock has stopped
    uint64_t by_kind[HT_KIND_LIMIT]; // calls that are made, those of the rest included
};

struct plan_thread {
    uint64_t first_word; // 0: a thread that does nothing
    uint32_t at_start;   // not born by another thread
    uint32_t reserved;
};

#endif
