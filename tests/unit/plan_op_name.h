// Names of plan ops for the messages of failed tests.
#pragma once

#include "replay/plan/ops.h"

static inline const char *plan_op_name(unsigned op)
{
    static const char *const names[PLAN_OP_LIMIT] = {
#define HT_X(number, SYMBOL, kind, numbered, words, handler) [PLAN_##SYMBOL] = #SYMBOL,
        PLAN_OPS(HT_X)
#undef HT_X
    };
    if (op && plan_op_info(op).kind == op)
        return event_infos[op].name;
    return names[op] ? names[op] : "(unused)";
}
