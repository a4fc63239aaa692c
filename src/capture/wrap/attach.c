// Exported functions for `heaptape record --pid` (src/capture/spool/attach.h).
#include "capture/spool/attach.h"

#include "capture/producer/producer.h"
#include "capture/wrap/next.h"
#include "capture/wrap/patch.h"
#include "capture/wrap/redirect.h"
#include "capture/wrap/wrap.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

int heaptape_redirect(const struct entries_plan *plan, uint64_t base, uint64_t *area)
{
    uint32_t was = producer_enter(PRODUCER_MUTED);
    int error = redirect_map(plan, (uintptr_t)base, area);
    producer_leave(was);
    return error;
}

static void look_up_functions(const struct spool_wrap *names, bool wraps_names)
{
    next_resolve();
    next_bind();
    wrap_set_names(names, wraps_names);
    if (next_is_loaded("libstdc++.so") || next_is_loaded("libc++") ||
        atomic_load(&wrap_operators) != WRAP_OPERATORS_UNKNOWN)
        wrap_cxx_resolve();
}

int heaptape_attach(const char *dir, const struct spool_wrap *names, int tables)
{
    static bool forks_known;
    uint32_t was = producer_enter(PRODUCER_MUTED);
    if (tables & SPOOL_TABLES_NAMES && !patch_names_are_called(names)) {
        producer_leave(was);
        return ENOLINK;
    }
    look_up_functions(names, tables & SPOOL_TABLES_NAMES);
    // Functions are redirected one by one, so do not record yet. Otherwise a block could be
    // allocated by a recorded call and freed by an unrecorded call, or vice versa.
    int error = producer_attach_prepare();
    if (!error && tables)
        error = patch_install(wrap_find_named);
    if (!error) {
        wrap_own_watch();
        redirect_start(wrap_own_loads);
        error = producer_attach(dir);
    }
    if (error) {
        redirect_stop();
        patch_remove();
    } else if (tables) {
        patch_start_checks();
    }
    if (!error && !forks_known) {
        forks_known = true;
        pthread_atfork(producer_before_fork, NULL, producer_after_fork);
    }
    producer_leave(was);
    return error;
}

int heaptape_end(uint32_t by)
{
    if (!next_is_injected())
        return ENOTSUP;
    uint32_t was = producer_enter(PRODUCER_MUTED);
    producer_set_ended_by(by);
    bool remains = producer_detach();
    redirect_stop();
    patch_remove();
    producer_leave(was);
    return remains ? 0 : EALREADY;
}

_Static_assert(offsetof(struct producer_tls, thread) == offsetof(struct spool_thread, state) &&
                   offsetof(struct producer_tls, busy) == offsetof(struct spool_thread, busy) &&
                   (int)PRODUCER_WRITING == (int)SPOOL_THREAD_WRITING,
               "struct spool_thread is the start of struct producer_tls");

const struct spool_thread *heaptape_thread(void)
{
    return (const struct spool_thread *)&producer_tls;
}
