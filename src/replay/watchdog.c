#include "replay/watchdog.h"

#include "base/clock.h"
#include "replay/plan/ops.h"

#include <unistd.h>

void watchdog_init(struct watchdog *w, const struct plan *p, const struct streaming *streaming,
                   struct results *r, uint64_t timeout_ns)
{
    *w = (struct watchdog){
        .plan = p, .streaming = streaming, .results = r, .timeout_ns = timeout_ns};
    w->positions = results_positions(r);
    w->n_threads = r->n_spans;
}

uint64_t watchdog_interval_ns(const struct watchdog *w)
{
    enum { STEPS = 4, MIN_NS = 1000000 };
    uint64_t ns = w->timeout_ns / STEPS;
    if (!w->timeout_ns || ns > CLOCK_NS_PER_S)
        return CLOCK_NS_PER_S;
    return ns > MIN_NS ? ns : MIN_NS;
}

static uint64_t pc_of(const struct watchdog *w, uint64_t thread)
{
    return atomic_load_explicit(&w->positions[thread].pc, memory_order_relaxed);
}

// Reads word `n` in the player's numbering, and up to two words after it.
static bool read_words(const struct watchdog *w, uint64_t n, uint64_t words[3])
{
    int fd = plan_fd(w->plan);
    uint64_t ring_at = w->streaming ? plan_ring_at(w->plan) : UINT64_MAX,
             at = plan_facts(w->plan)->file_at + n * 8;
    if (n >= ring_at) {
        fd = streaming_fd(w->streaming);
        at = plan_facts(w->plan)->streaming_bytes + (n - ring_at) * 8;
    }
    return n < (uint64_t)1 << 56 &&
           pread(fd, words, 3 * sizeof *words, (off_t)at) >= (ssize_t)sizeof *words;
}

bool watchdog_op_of(const struct watchdog *w, uint64_t thread, struct watchdog_op *op)
{
    uint64_t pc = pc_of(w, thread), start = atomic_load(&w->results->words), words[3] = {0};
    uint64_t n = (pc - start) / 8;
    if (!w->plan || !pc || pc <= start || !read_words(w, n - 1, words))
        return false;
    *op = (struct watchdog_op){plan_op_of(words[0]), plan_size_of(words[0]),
                               n + w->positions[thread].base};
    if (op->op == PLAN_WIDE) {
        op->op = plan_op_of(words[0] >> 8);
        op->size = words[2];
    }
    return op->op != PLAN_STOP;
}

// Returns true if a thread is sleeping until its next call is due.
static bool is_paced(const struct watchdog *w)
{
    struct watchdog_op op;
    for (uint64_t i = 0; w->results->task.paced && i < w->n_threads; i++) {
        if (watchdog_op_of(w, i, &op) && op.op == PLAN_PACE)
            return true;
    }
    return false;
}

static uint64_t positions_now(const struct watchdog *w)
{
    uint64_t sum = atomic_load_explicit(&w->results->status, memory_order_relaxed);
    // The constant is from FNV-1a.
    for (uint64_t i = 0; i <= w->n_threads; i++)
        sum = (sum ^ (pc_of(w, i) + w->positions[i].base)) * 0x100000001b3u;
    return sum;
}

bool watchdog_is_stuck(struct watchdog *w)
{
    uint64_t now = positions_now(w);
    if (now != w->seen || atomic_load(&w->results->idle) ||
        (w->streaming && streaming_decodes(w->streaming)) || is_paced(w)) {
        w->seen = now;
        w->still_ns = 0;
        return false;
    }
    w->still_ns += watchdog_interval_ns(w);
    return w->timeout_ns && w->still_ns >= w->timeout_ns;
}
