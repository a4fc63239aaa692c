// Plays a plan like the player, but without an allocator. The player trusts a plan: no word may
// lead outside the plan, and no entry may be beyond the slot table.
#pragma once

#include "replay/plan/plan.h"

#include <stdbool.h>

// Aborts the process if a word is invalid. With `proved`, plays several orders allowed by the
// dependencies, and also aborts if a block is used or touched outside its lifetime or a thread
// waits forever. Pass false for plans loaded from files, which give no such guarantee. The plan
// must not be streamed.
void play_plan(const struct plan *plan, bool proved);
