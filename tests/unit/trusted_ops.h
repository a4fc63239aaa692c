// Adds ops of every kind that the player executes without checking its operands.
#pragma once

#include "replay/plan/plan.h"

static int trusted_ops_add(struct plan *p, struct err *e)
{
    const struct workload_dependency on_first = {0, 0};
    const struct workload_op first[] = {
        {.kind = HT_MALLOC, .slot = 0, .size = 100},
        {.kind = HT_THREAD_CREATE, .value = 1},
        {.kind = HT_PREEXISTING, .slot = 9, .size = 64},
        {.kind = HT_MALLOC, .slot = 3, .size = 5ull << 32},
        {.kind = HT_MEMALIGN, .slot = 4, .size = 64, .align = 64},
    };
    const struct workload_op second[] = {
        {.kind = HT_FREE, .slot = 0, .n_dependencies = 1, .dependencies = &on_first},
        {.kind = HT_REALLOC, .slot = WORKLOAD_NO_SLOT, .flags = WORKLOAD_FAILED},
    };
    int rc = plan_add_ops(p, 0, first, sizeof first / sizeof *first, e);
    for (uint32_t i = 0; rc == 0 && i < 100; i++)
        rc = plan_add_ops(p, 0, &(struct workload_op){.kind = HT_MALLOC, .slot = 10 + i, .size = i},
                          1, e);
    return rc ? rc : plan_add_ops(p, 1, second, sizeof second / sizeof *second, e);
}
