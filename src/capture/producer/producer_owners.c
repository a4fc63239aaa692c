// The thread that recorded the last event at each address (see producer_regions in producer.h).
#include "capture/producer/producer_private.h"

#include <errno.h>

struct producer_region producer_regions[PRODUCER_REGIONS];

// Number of regions with units.
static _Atomic uint32_t mapped;

// Set if memory for units is not available, because each retry would cost system calls.
static _Atomic bool is_full;

// Spare memory for units of a sandboxed process, which must not make system calls. NULL if not
// mapped.
enum { SPARES = 32 };
static void *_Atomic spares;
static _Atomic uint32_t spares_used;

void producer_owners_sandbox(void)
{
    const size_t bytes = (size_t)SPARES * PRODUCER_REGION_UNITS;
    void *none = NULL, *made = producer_memory_is_scarce(bytes) ? NULL : producer_map_units(bytes);
    if (made && !atomic_compare_exchange_strong(&spares, &none, made))
        producer_munmap(made, bytes);
}

// Returns zeroed memory for the units of a region, or NULL.
static void *allocate_units(void)
{
    if (producer_inherited.sandbox) {
        char *first = atomic_load_explicit(&spares, memory_order_acquire);
        uint32_t i =
            first ? atomic_fetch_add_explicit(&spares_used, 1, memory_order_relaxed) : SPARES;
        return i < SPARES ? first + (size_t)i * PRODUCER_REGION_UNITS : NULL;
    }
    uint32_t n = atomic_load_explicit(&mapped, memory_order_relaxed) + 1;
    return producer_memory_is_scarce((size_t)n * PRODUCER_REGION_UNITS)
               ? NULL
               : producer_map_units(PRODUCER_REGION_UNITS);
}

// Maps the units of the address's region. Returns NULL if the mapping fails or another thread is
// mapping the units. In both cases, the event needs no unit, because it has read the counter and no
// earlier event at the address has set the unit.
static _Atomic uint8_t *map_units(uint64_t address)
{
    struct producer_region *r = producer_region_at(address);
    uint64_t region = address >> PRODUCER_REGION_SHIFT;
    if (atomic_load_explicit(&r->units, memory_order_relaxed))
        return NULL;
    void *made = atomic_load_explicit(&is_full, memory_order_relaxed) ? NULL : allocate_units();
    if (!made) {
        // A forked child inherits is_full, but has a spool of its own.
        _Atomic uint32_t *without = &producer_inherited.spool->without_units;
        atomic_store_explicit(&is_full, true, memory_order_relaxed);
        if (!atomic_load_explicit(without, memory_order_relaxed))
            atomic_store_explicit(without, 1, memory_order_relaxed);
        return NULL;
    }
    _Atomic uint8_t *none = NULL,
                    *units = (_Atomic uint8_t *)((uintptr_t)made - producer_units_before(region));
    if (!atomic_compare_exchange_strong(&r->units, &none, units)) {
        if (!producer_inherited.sandbox)
            producer_munmap(made, PRODUCER_REGION_UNITS);
        return NULL;
    }
    atomic_fetch_add_explicit(&mapped, 1, memory_order_relaxed);
    atomic_store_explicit(&r->number, region + 1, memory_order_release);
    return producer_unit_at(address);
}

// Sets the address's unit to the thread `owner`. If `sets_zero` is false, does not change a
// unit of 0.
static void set_unit(_Atomic uint8_t *unit, uint32_t owner, uint64_t address, bool sets_zero)
{
    uint8_t old = atomic_load_explicit(unit, memory_order_relaxed), other,
            value =
                owner == PRODUCER_UNNUMBERED ? 0 : (uint8_t)(owner | producer_other_bit(address));
    if (!old && !sets_zero)
        return;
    // If the unit already contains the thread, the unit applies to both addresses from now on. The
    // exchange fails if another thread has recorded an event at the other address.
    other = old & (uint8_t)(value | ~PRODUCER_NOT_ONE);
    if (((old ^ owner) & ~(uint32_t)PRODUCER_NOT_ONE) == 0 &&
        atomic_compare_exchange_strong_explicit(unit, &old, other, memory_order_relaxed,
                                                memory_order_relaxed))
        return;
    atomic_store_explicit(unit, value, memory_order_relaxed);
}

void producer_own(uint64_t address, uint64_t size)
{
    uint32_t owner = producer_tls.owner;
    if (!owner || !address || address & (PRODUCER_BLOCK_BYTES - 1) ||
        address >> CODEC_ADDRESS_SHIFT >> CODEC_PTR_BITS)
        return;
    // A unit of 0 may stay 0, because the next event at the address then reads the counter. Frees
    // and big blocks leave such units unchanged, so that pages without other units stay
    // unallocated.
    bool sets_zero = size < PRODUCER_BIG_BYTES && owner != PRODUCER_UNNUMBERED;
    _Atomic uint8_t *unit = producer_unit_at(address);
    if (producer_unlikely(!unit) && sets_zero) {
        int saved_errno = errno;
        unit = map_units(address);
        errno = saved_errno;
    }
    if (unit)
        set_unit(unit, owner, address, sets_zero);
}

// A new thread may get the number of an ended thread. This does not misorder events, because all of
// the new thread's readings are later than the ended thread's events.
void producer_set_owner(const struct producer_thread *t, uint32_t sequence)
{
    const uint32_t low = PRODUCER_NOT_SECOND - 1;
    // Leaves the bits PRODUCER_NOT_ONE free.
    uint32_t number = t->index + 1, owner = (number & low) | (number & ~low) << 2;
    if (number > PRODUCER_NUMBERED)
        owner = PRODUCER_UNNUMBERED;
    producer_tls.owner = sequence & SPOOL_THREADS ? owner : 0;
}

void producer_owners_stop(void)
{
    for (uint32_t i = 0; i < PRODUCER_REGIONS; i++) {
        struct producer_region *r = &producer_regions[i];
        uintptr_t start = producer_region_start(r);
        if (start)
            producer_munmap((void *)start, PRODUCER_REGION_UNITS);
        atomic_store(&r->number, 0);
        atomic_store(&r->units, NULL);
    }
    char *first = atomic_exchange(&spares, NULL);
    uint32_t used = atomic_exchange(&spares_used, 0);
    if (first && used < SPARES)
        producer_munmap(first + (size_t)used * PRODUCER_REGION_UNITS,
                        (size_t)(SPARES - used) * PRODUCER_REGION_UNITS);
    atomic_store(&mapped, 0);
    atomic_store(&is_full, false);
}
