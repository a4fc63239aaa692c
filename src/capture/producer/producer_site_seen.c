// The table of the sites that are defined in the trace.
#include "capture/producer/producer_private.h"
#include "capture/producer/producer_site.h"

bool producer_site_in_line(const struct producer_sites *sites, uint64_t place, uint64_t id)
{
    for (unsigned i = 1; i < PRODUCER_SEEN_LINE; i++) {
        if (atomic_load_explicit(&sites->seen[place ^ i], memory_order_relaxed) == id)
            return true;
    }
    return false;
}

// Stores the ID in its preferred entry, and moves the ID that was there to another entry of the
// cache line. A whole stack is added after its parts and occurs more often, so it gets the
// preferred entry. Returns false if the cache line was full and an ID was lost.
static bool add_seen(struct producer_sites *sites, uint64_t id)
{
    uint64_t place = producer_site_place(sites, id), i = 1;
    uint64_t there = atomic_load_explicit(&sites->seen[place], memory_order_relaxed);
    atomic_store_explicit(&sites->seen[place], id, memory_order_relaxed);
    if (!there)
        return true;
    while (i < PRODUCER_SEEN_LINE &&
           atomic_load_explicit(&sites->seen[place ^ i], memory_order_relaxed))
        i++;
    bool empty = i < PRODUCER_SEEN_LINE;
    place ^= empty ? i : 1 + (id >> 32) % (PRODUCER_SEEN_LINE - 1);
    atomic_store_explicit(&sites->seen[place], there, memory_order_relaxed);
    return empty;
}

void producer_site_add(struct producer_sites *sites, uint64_t id)
{
    uint32_t size = (atomic_load_explicit(&sites->seen_mask, memory_order_relaxed) |
                     (PRODUCER_SEEN_FIRST - 1)) +
                    1;
    if (!add_seen(sites, id) || size == PRODUCER_SEEN_SITES ||
        atomic_fetch_add_explicit(&sites->n_seen, 1, memory_order_relaxed) < size / 2 ||
        atomic_exchange_explicit(&sites->growing, 1, memory_order_acquire))
        return;
    // While the entries move, other threads may lose or miss IDs. They then define the sites again.
    atomic_store_explicit(&sites->seen_mask, size * 4 - 1, memory_order_relaxed);
    for (uint32_t i = 0; i < size; i++) {
        uint64_t there = atomic_load_explicit(&sites->seen[i], memory_order_relaxed);
        if (!there || (producer_site_place(sites, there) ^ i) < PRODUCER_SEEN_LINE)
            continue;
        atomic_store_explicit(&sites->seen[i], 0, memory_order_relaxed);
        add_seen(sites, there);
    }
    atomic_store_explicit(&sites->growing, 0, memory_order_release);
}
