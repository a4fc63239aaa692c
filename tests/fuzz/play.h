// Plays a plan as the player does, without an allocator. The player trusts a plan: no word of it may lie outside, and no entry
// behind the slot table.
#ifndef HEAPTAPE_TESTS_PLAY_H
#define HEAPTAPE_TESTS_PLAY_H

#include "replay/plan/plan.h"

#include <stdbool.h>

// Ends the process if a word is not as it must be. With `proved`, also if a block is used or touched outside its life, or a
// thread waits for ever, in any of several orders that the dependencies allow; false for plans that were loaded from files,
// of which that is not proved. The plan must not be streamed.
void play_plan(const struct plan *plan, bool proved);

#endif
