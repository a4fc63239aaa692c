// Adds processes that cannot be recorded to the user's reserves file.
#include "capture/producer/producer_private.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>

// Finds the resource limit that makes calls fail with `error`. If there are several such limits,
// finds the lowest.
static void find_limit(struct spool_untraced *u, uint32_t error)
{
    static const struct {
        uint32_t error;
        __rlimit_resource_t resource;
    } causes[] = {
        {ENOMEM, RLIMIT_AS}, {ENOMEM, RLIMIT_DATA}, {EFBIG, RLIMIT_FSIZE}, {EMFILE, RLIMIT_NOFILE}};
    struct rlimit limit;
    uint64_t lowest = RLIM_INFINITY;
    for (unsigned i = 0; i < sizeof causes / sizeof *causes; i++) {
        if (causes[i].error != error || getrlimit(causes[i].resource, &limit) < 0 ||
            limit.rlim_cur >= lowest)
            continue;
        lowest = limit.rlim_cur;
        u->resource = causes[i].resource;
        u->limit = lowest;
    }
}

bool producer_count_refused(struct producer_process *p, struct spool_reserves *shared, uint32_t why)
{
    uint32_t i = shared ? atomic_fetch_add_explicit(&shared->untraced, 1, memory_order_relaxed)
                        : SPOOL_UNTRACED;
    if (i >= SPOOL_UNTRACED)
        return false;
    struct spool_untraced *u = &shared->untraced_of[i];
    u->pid = producer_process_id();
    if (producer_inherited.filtered)
        memcpy(u->name, producer_inherited.name, sizeof u->name);
    else
        syscall(SYS_prctl, PR_GET_NAME, u->name, 0, 0, 0);
    find_limit(u, why);
    p->unrecorded = &u->count;
    p->counts = 1;
    // Pairs with the recorder's acquire. The members above are set before this store.
    atomic_store_explicit(&u->why, why, memory_order_release);
    return false;
}
