// Wakes and checks the session's recorder, and turns tracing off.
#include "capture/producer/producer_private.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

void producer_wake_recorder(struct producer_process *p)
{
    // In a sandbox, make no system call. The recorder wakes when its sleep times out.
    if (producer_sandbox_chunks(p))
        atomic_fetch_add_explicit(&p->header->wakeups, SPOOL_CHUNKS_A_WAKE, memory_order_relaxed);
    else
        control_wake_recorder(p->header, producer_inherited.futexes);
}

bool producer_has_recorder(const struct producer_process *p)
{
    const struct producer_inherited *in = &producer_inherited;
    if (in->session.flags & SPOOL_NO_RECORDER)
        return true;
    if (!producer_sandbox_chunks(p))
        return control_recorder_lives(in->futexes, in->session.owner);
    // A sandbox forbids the system call in control_recorder_lives, so read the mapping instead,
    // although the access may fault.
    return atomic_load_explicit(&in->futexes->recorder.owner, memory_order_acquire) ==
           in->session.owner;
}

uint32_t heaptape_recorder(void)
{
    const struct producer_inherited *in = &producer_inherited;
    const struct producer_process *p = producer_current();
    bool recorded = producer_has_state(p, PRODUCER_RUNNING);
    return recorded && !(in->session.flags & SPOOL_NO_RECORDER) && producer_has_recorder(p)
               ? in->session.recorder_pid
               : 0;
}

void producer_set_ended_by(uint32_t pid)
{
    const struct producer_process *p = producer_current();
    if (p && p->header)
        atomic_store(&p->header->ended_by, pid);
}

void producer_end_waits(struct producer_process *p)
{
    atomic_fetch_add(&p->header->free_sequence, 1);
    if (!producer_sandbox_chunks(p))
        syscall(SYS_futex, &p->header->free_sequence, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void producer_process_off(struct producer_process *p, const char *reason)
{
    uint32_t running = PRODUCER_RUNNING;
    if (!atomic_compare_exchange_strong(&p->state, &running, PRODUCER_OFF))
        return;
    producer_format(p->header->reason, sizeof p->header->reason, "%s", reason);
    atomic_store_explicit(&p->header->status, SPOOL_OFF, memory_order_release);
    producer_end_waits(p);
    producer_wake_recorder(p);
}
