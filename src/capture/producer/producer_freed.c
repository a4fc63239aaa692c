// The set of addresses at which blocks were freed since heaptape attached to the process. The set
// is a direct-mapped table. An entry is one word, which threads read and replace atomically. An
// entry has a bit for each of 32 addresses at intervals of 16 bytes, and a key. The key consists of
// a generation and the address bits that the entry's index does not determine.
#include "capture/producer/producer_private.h"

enum {
    PLACE_BITS = 5,
    UNIT_BITS = CODEC_PTR_BITS, // bits of an address in units of 8 bytes
    HIGH_BITS = UNIT_BITS - PLACE_BITS - PRODUCER_FREED_INDEX_BITS,
    TABLE_BYTES = PRODUCER_FREED_ENTRIES * 8,
    HEADER_BYTES = 8, // the part of a block's header that glibc's free reads
};
_Static_assert(1 << PLACE_BITS == PRODUCER_FREED_PLACES, "the places of an entry");
_Static_assert(HIGH_BITS + PRODUCER_FREED_GENERATION_BITS + PRODUCER_FREED_PLACES == 64,
               "an entry is one word");

// Position of an address in the table.
struct freed_place {
    _Atomic uint64_t *entry;
    uint64_t key, bit;
};

void producer_freed_start(void)
{
    if (!producer_memory_is_scarce(TABLE_BYTES))
        producer_map_wiped((void *_Atomic *)&producer_inherited.freed, TABLE_BYTES);
}

void producer_freed_stop(void)
{
    void *table = atomic_exchange(&producer_inherited.freed, NULL);
    if (table)
        producer_unmap_private(table, TABLE_BYTES);
}

// Returns the number of state changes and resets. After each state change or reset, any address may
// have a live block whose allocation is not in the trace. Returns UINT64_MAX if the number is too
// large for an entry. Also returns UINT64_MAX during a reset: the recorder then drops the
// allocations that it has drained, but keeps later frees of the same blocks.
static inline uint64_t read_generation(const struct spool_header *h)
{
    const struct spool_control *k = &h->control;
    uint32_t asked = atomic_load_explicit(&k->asked[SPOOL_RESET], memory_order_relaxed);
    uint64_t sum = atomic_load_explicit(&k->changes_made, memory_order_relaxed) +
                   atomic_load_explicit(&h->restarts, memory_order_relaxed) + asked;
    bool resetting = atomic_load_explicit(&k->done[SPOOL_RESET], memory_order_relaxed) != asked;
    return resetting || sum >> PRODUCER_FREED_GENERATION_BITS ? UINT64_MAX : sum;
}

// Returns false if the address cannot be in the table.
static inline __attribute__((always_inline)) bool
find_place(const struct spool_header *h, uint64_t address, struct freed_place *to)
{
    _Atomic uint64_t *table = atomic_load_explicit(&producer_inherited.freed, memory_order_acquire);
    uint64_t unit = codec_relative(address, 0), generation;
    if (!table || unit >> UNIT_BITS)
        return false;
    generation = read_generation(h);
    // Blocks rarely start at odd multiples of 8, so these addresses have separate entries.
    unit = unit >> 1 | (unit & 1) << (UNIT_BITS - 1);
    uint64_t region = unit >> PLACE_BITS, high = region >> PRODUCER_FREED_INDEX_BITS;
    // Thread heaps start at multiples of a large power of two, so the index must depend on all
    // bits.
    uint32_t spread = (uint32_t)high * 0x9e3779b1u >> (32 - PRODUCER_FREED_INDEX_BITS);
    to->entry = &table[(region ^ spread) & (PRODUCER_FREED_ENTRIES - 1)];
    to->key = high << PRODUCER_FREED_GENERATION_BITS | generation;
    to->bit = 1ull << (unit & (PRODUCER_FREED_PLACES - 1));
    return generation != UINT64_MAX;
}

void producer_freed_add(const struct spool_header *h, uint64_t address)
{
    struct freed_place at;
    if (!find_place(h, address, &at))
        return;
    uint64_t was = atomic_load_explicit(at.entry, memory_order_relaxed), word;
    do
        word = (was >> PRODUCER_FREED_PLACES == at.key ? was : at.key << PRODUCER_FREED_PLACES) |
               at.bit;
    while (!atomic_compare_exchange_weak_explicit(at.entry, &was, word, memory_order_relaxed,
                                                  memory_order_relaxed));
}

void producer_freed_remove(const struct spool_header *h, uint64_t address)
{
    struct freed_place at;
    // If another thread replaces the entry after the comparison, the address that it added may be
    // lost.
    if (find_place(h, address, &at) &&
        atomic_load_explicit(at.entry, memory_order_relaxed) >> PRODUCER_FREED_PLACES == at.key)
        atomic_fetch_and_explicit(at.entry, ~at.bit, memory_order_relaxed);
}

static inline bool is_freed(const struct spool_header *h, uint64_t address)
{
    struct freed_place at;
    if (!find_place(h, address, &at))
        return false;
    uint64_t word = atomic_load_explicit(at.entry, memory_order_relaxed);
    return word >> PRODUCER_FREED_PLACES == at.key && (word & at.bit);
}

bool producer_freed_has(const struct spool_header *h, uint64_t address)
{
    return is_freed(h, address);
}

// Returns true if the free of the address needs no usable size. The thread must be busy, so that
// detaching does not unmap the table or the spool.
static bool is_known(uint64_t address)
{
    return !producer_residency_hint(address) || is_freed(producer_inherited.spool, address);
}

bool producer_put_noted_plain(unsigned kind, uint64_t address, unsigned allocator)
{
    struct producer_stream *stream = producer_begin(producer_residency_big_hint(address), false);
    if (!stream)
        return false;
    bool done = is_known(address);
    if (done) {
        uint64_t *w = stream->pos, ticks = producer_noted_ticks(stream, address, PRODUCER_FREES);
        done = codec_epoch_of_ticks(ticks) == stream->fast_epoch && producer_has_room(w, 2) &&
               codec_relative(address, 0) >> CODEC_PTR_BITS == 0;
        if (done) {
            *w++ = codec_note(HT_NOTE_ALLOCATOR, allocator);
            *w++ = codec_plain(kind, ticks >> CODEC_STAMP_SHIFT, address);
            producer_publish(stream, w);
        }
    }
    producer_compiler_fence();
    producer_tls.busy = 0;
    return done;
}

bool producer_retry_plain(unsigned kind, uint64_t address)
{
    // The reading of the counter waits for earlier loads, and would delay the allocator's access to
    // the block's header, whose cache line another thread may have written.
    __builtin_prefetch((const void *)(uintptr_t)(address - HEADER_BYTES), 1);
    struct producer_stream *stream = producer_begin(producer_residency_big_hint(address), false);
    if (!stream)
        return false;
    if (is_known(address))
        return producer_end_plain(stream, producer_ticks(stream, address, PRODUCER_FREES), 0, kind,
                                  address);
    producer_compiler_fence();
    producer_tls.busy = 0;
    return false;
}
