// Results of replays as text.
#ifndef HEAPTAPE_PRINT_REPLAY_H
#define HEAPTAPE_PRINT_REPLAY_H

#include "replay/session.h"

// One line about the workload and what is skipped of it.
void replay_print_workload(const struct replay_session *s);

// The result of replay, and of replay --verify.
void replay_print_text(const struct replay_session *s, const struct replay_result *r);
void replay_print_verified(const struct replay_result *r);

// The table of compare.
// The runs of the real program, and how well the replay predicted them.
void replay_print_real(const struct replay_session *s);

void replay_print_table(const struct replay_session *s);

#endif
