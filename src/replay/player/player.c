// Parts of the player that all other parts use: failures, shared memory and the slot table.
#include "replay/player/player.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { EXIT_FAILED = 1 };

struct player player;

// Returns only in the first thread that fails. All other threads wait for the process to end.
void player_claim_failure(void)
{
    if (atomic_exchange_explicit(&player.results->failing, 1, memory_order_relaxed)) {
        for (;;)
            pause();
    }
}

_Noreturn void player_report_failure(enum results_status why, const struct player_thread *t,
                                     unsigned kind, uint64_t size, int error)
{
    struct results *r = player.results;
    r->failed_thread = t ? t->number : 0;
    r->failed_position = t ? player_position(t) : 0;
    r->failed_kind = kind;
    r->failed_size = size;
    r->failed_errno = (uint32_t)error;
    atomic_store_explicit(&r->status, why, memory_order_release);
    _exit(EXIT_FAILED);
}

_Noreturn void player_fail(enum results_status why, const struct player_thread *t, unsigned kind,
                           uint64_t size, int error)
{
    player_claim_failure();
    player_report_failure(why, t, kind, size, error);
}

// Returns true if C11 and POSIX allow an allocator to refuse these arguments.
static bool is_against_contract(unsigned kind, uint64_t alignment, uint64_t size)
{
    bool power = alignment && !(alignment & (alignment - 1));
    return !power || (kind == HT_POSIX_MEMALIGN && alignment % sizeof(void *)) ||
           (kind == HT_ALIGNED_ALLOC && size % alignment);
}

void player_refused(struct player_thread *t, unsigned kind, uint64_t size)
{
    struct results *r = player.results;
    int error = errno;
    bool aligned = kind == HT_PREEXISTING || event_infos[kind].fields & HT_F_ALIGN;
    uint64_t alignment = aligned ? player_alignment(t) : 1;
    // An alignment of 1 means a call of malloc.
    if (alignment == 1 ||
        (!is_against_contract(kind, alignment, size) && (!error || error == ENOMEM)))
        player_fail(RESULTS_OUT_OF_MEMORY, t, kind, size, 0);
    // A TOUCH applies only to the next block.
    t->touches = false;
    t->refused++;
    if (atomic_exchange(&r->refused, 1) == 0) {
        r->report.refused_kind = kind;
        r->report.refused_size = size;
        r->report.refused_alignment = alignment;
    }
}

void *player_try_map(size_t bytes, int flags)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | flags, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void *player_map_shared(size_t bytes, int flags)
{
    void *at = player_try_map(bytes, flags);
    if (!at)
        player_fail(RESULTS_NO_SETUP, NULL, 0, bytes, errno);
    return at;
}

void player_snapshot(unsigned which)
{
    struct results *r = player.results;
    if (r->snapshot_entries)
        memcpy(results_snapshots(r) + which * r->snapshot_entries, player.slot_table,
               r->snapshot_entries * sizeof *player.slot_table);
}
