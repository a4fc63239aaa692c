// The program's work between two calls evicts the allocator's code and data from the CPU's caches
// and branch predictors. A replay has no such work. Therefore the player evicts them before each
// timed call, in proportion to the program's CPU time between two calls.
#include "replay/player/player.h"

#include <sys/mman.h>

// In this CPU time, a program executes one line of code and reads one line of data that its caches
// lack (docs/design/replay.md).
enum { NS_PER_LINE = 32 };

// The gap between two calls varies. A gap longer than this many mean gaps contains idle time.
enum { MAX_GAPS = 4 };

enum { CODE_LINES = 4096, DATA_BYTES = 2 << 20 };

#if defined(__x86_64__)
#define LINE "decl %edi\n je evict_end\n jmp 1f\n"
#elif defined(__aarch64__)
#define LINE "subs w0, w0, #1\n b.eq evict_end\n b 1f\n"
#endif

#ifdef LINE
__asm__(".text\n .globl evict_lines\n .hidden evict_lines\n .balign 64\n"
        "evict_lines: .rept 4096\n" LINE ".balign 64\n 1:\n .endr\n"
        "evict_end: ret\n");

// Lines of code. A call of line i executes n lines from i on.
extern const char evict_lines[CODE_LINES][PLAYER_CACHE_LINE];

static void execute_lines(uint64_t i, uint64_t n)
{
    ((void (*)(uint32_t))(uintptr_t)evict_lines[i])((uint32_t)n);
}
#else
static void execute_lines(uint64_t i, uint64_t n)
{
    (void)i;
    (void)n;
}
#endif

static const volatile char *data;

void player_evict_init(void)
{
    if (player.results->task.gap_ns)
        data = player_map_shared(DATA_BYTES, MAP_POPULATE);
}

void player_evict(struct player_thread *t)
{
    uint64_t n = (t->owed_ns += t->gap_ns) / NS_PER_LINE;
    t->owed_ns %= NS_PER_LINE;
    for (n = n < CODE_LINES ? n : CODE_LINES; n;) {
        uint64_t first = t->evicted % CODE_LINES,
                 now = n < CODE_LINES - first ? n : CODE_LINES - first;
        execute_lines(first, now);
        for (uint64_t end = t->evicted + now; t->evicted < end; t->evicted++)
            (void)data[t->evicted * PLAYER_CACHE_LINE % DATA_BYTES];
        n -= now;
    }
}

void player_set_gap(struct player_thread *t, uint64_t ns, uint64_t calls)
{
    const struct results_task *task = &player.results->task;
    uint64_t n = calls - t->paced_calls, max = MAX_GAPS * task->gap_ns;
    if (!task->gap_ns || task->paced || !n)
        return;
    uint64_t each = (ns - t->paced_ns) / n, gap = each > task->other_ns ? each - task->other_ns : 0;
    t->gap_ns = gap < max ? gap : max;
    t->paced_ns = ns;
    t->paced_calls = calls;
}
