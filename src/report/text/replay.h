// Text of the results of replays.
#pragma once

#include "replay/session.h"

// Prints one line about the workload and the ops that are skipped.
void replay_print_workload(const struct replay_session *s);

// Print the result of `replay` (replay_print_text) and of `replay --verify`.
void replay_print_text(const struct replay_session *s, const struct replay_result *r);
void replay_print_verified(const struct replay_result *r);

// Prints the runs of the real program, and how well the replay predicted these runs.
void replay_print_real(const struct replay_session *s);

// Prints why allocators failed, one line each on standard error.
void replay_print_failed(const struct replay_session *s);

// Prints the table of `compare`.
void replay_print_table(const struct replay_session *s);
