#include "player/loop.h"

void player_play_usable(struct player_thread *t)
{
    player_loop(t, false, RESULTS_TOUCH_USABLE);
}
