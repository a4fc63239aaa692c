// Plays a plan as the player does, without an allocator. The player trusts a plan: no word of it may lie outside, and no entry
// behind the slot table.
#ifndef HEAPTAPE_TESTS_PLAY_H
#define HEAPTAPE_TESTS_PLAY_H

#include "plan/plan.h"

#include <stdbool.h>

// Ends the process if a word is as it must not be. `proved`: nor may a block be used that does not exist, or a thread wait for
// ever, which is not proved of plans that were loaded from files. The plan must not be streamed.
void play_plan(const struct plan *plan, bool proved);

#endif
