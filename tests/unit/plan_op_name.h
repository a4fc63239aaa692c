// Names of the ops of a plan, for the messages of failed tests.
#ifndef HEAPTAPE_TESTS_PLAN_OP_NAME_H
#define HEAPTAPE_TESTS_PLAN_OP_NAME_H

#include "replay/plan/ops.h"

static const char *const plan_own_names[PLAN_OP_LIMIT] = {
    [PLAN_STOP] = "STOP",
    [PLAN_WAIT] = "WAIT",
    [PLAN_COUPLE] = "COUPLE",
    [PLAN_SAMPLE] = "SAMPLE",
    [PLAN_COUNT] = "COUNT",
    [PLAN_STATS] = "STATS",
    [PLAN_TRIM] = "TRIM",
    [PLAN_SNAPSHOT] = "SNAPSHOT",
    [PLAN_PACE] = "PACE",
    [PLAN_TOUCH] = "TOUCH",
    [PLAN_TOUCH_LATE] = "TOUCH_LATE",
    [PLAN_SWITCH] = "SWITCH",
    [PLAN_JUMP] = "JUMP",
    [PLAN_NEXT_SEGMENT] = "NEXT_SEGMENT",
    [PLAN_CALLOC_MANY] = "CALLOC_MANY",
    [PLAN_REALLOCARRAY_NEW] = "REALLOCARRAY_NEW",
    [PLAN_REALLOC_FREE] = "REALLOC_FREE",
    [PLAN_REALLOC_NEW] = "REALLOC_NEW",
    [PLAN_START_THREAD] = "START_THREAD",
    [PLAN_SKIPPED] = "SKIPPED",
    [PLAN_WIDE] = "WIDE",
};

static inline const char *plan_op_name(unsigned op)
{
    if (plan_own_names[op])
        return plan_own_names[op];
    return event_infos[op].name ? event_infos[op].name : "(unused)";
}

#endif
