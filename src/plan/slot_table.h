// Which entry of the player's table a block gets. Not the workload's slot number: entries in one cache line belong to
// one thread, else the threads fight for the line, and an entry that one thread gave up is not taken by another one
// without a wait between the two.
#ifndef HEAPTAPE_PLAN_SLOT_TABLE_H
#define HEAPTAPE_PLAN_SLOT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLACES_LINE = 8,    // entries of a cache line
    PLACES_BATCH = 256, // entries that go from one thread to another at once
};

// The entries that a thread may take. All zero is one that has none.
struct place_owner {
    uint32_t *free;
    size_t n, capacity;
    uint32_t fresh, fresh_end; // what is left of its last new line
};

// Entries that a thread has too many of, for whoever waits until `giver` has published `position`.
struct place_batch {
    uint32_t giver;
    uint64_t position;
    size_t n;
    uint32_t entries[];
};

struct places {
    uint64_t limit; // entries in use: the size of the table
    struct place_batch **shared;
    size_t first, n, capacity; // shared[first..n), oldest first
};

void places_init(struct places *p);
void places_release(struct places *p);
void place_owner_release(struct place_owner *o);

// An entry for `o`, > 0. When *batch is not NULL, `o` has taken over that batch: the caller makes it wait, and frees the
// batch. 0 or -ENOMEM.
int places_take(struct places *p, struct place_owner *o, uint32_t *entry, struct place_batch **batch);

// As places_take, but an entry that nobody has had before.
int places_take_fresh(struct places *p, struct place_owner *o, uint32_t *entry);

// Gives an entry back. 1 when the owner now has so many that it should share some, 0, or -ENOMEM.
int places_give(struct place_owner *o, uint32_t entry);

// Makes a batch of the owner's oldest entries (all, at most PLACES_BATCH), which others may take after `position`.
int places_share(struct places *p, struct place_owner *o, uint32_t giver, uint64_t position);

#endif
