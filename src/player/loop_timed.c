#include "player/loop.h"

void player_play_timed_page(struct player_thread *t)
{
    player_loop(t, true, RESULTS_TOUCH_PAGE);
}

void player_play_timed_none(struct player_thread *t)
{
    player_loop(t, true, RESULTS_TOUCH_NONE);
}

void player_play_timed_all(struct player_thread *t)
{
    player_loop(t, true, RESULTS_TOUCH_ALL);
}
