#include "player/loop.h"

void player_play_page(struct player_thread *t)
{
    player_loop(t, false, RESULTS_TOUCH_PAGE);
}

void player_play_none(struct player_thread *t)
{
    player_loop(t, false, RESULTS_TOUCH_NONE);
}

void player_play_all(struct player_thread *t)
{
    player_loop(t, false, RESULTS_TOUCH_ALL);
}
