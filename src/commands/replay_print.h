// Figures of replays as JSON and as text.
#ifndef HEAPTAPE_COMMANDS_REPLAY_PRINT_H
#define HEAPTAPE_COMMANDS_REPLAY_PRINT_H

#include "base/json.h"
#include "commands/replay_session.h"

// The member "machine".
void replay_print_machine(struct json *j, const struct machine *m);

// The members of one allocator's `replay --json` object, without the braces.
void replay_print_members(struct json *j, const struct replay_session *s, const struct replay_figures *f);

// The members of `replay --verify --json`, without the braces.
void replay_print_verified_members(struct json *j, const struct replay_figures *f);

// That nothing was found, one line for people.
void replay_print_verified(const struct replay_figures *f);

// The figures for people.
void replay_print_text(const struct replay_session *s, const struct replay_figures *f);

// The table of compare.
void replay_print_table(const struct replay_session *s);

// What the workload is and what the player cannot do of it, one line.
void replay_print_workload(const struct replay_session *s);

// replay_fragmentation.c: who keeps pages from being given back.
void replay_print_fragmentation(struct json *j, const struct replay_session *s, const struct replay_figures *f);
void replay_print_fragmentation_text(const struct replay_session *s, const struct replay_figures *f);

// replay_fidelity.c: how near the replay comes to what was recorded. The line is of the allocator that it was recorded
// on, if that is among them.
void replay_print_fidelity(struct json *j, const struct replay_session *s, const struct replay_figures *f);
void replay_print_fidelity_text(const struct replay_session *s, const struct replay_figures *f);
void replay_print_fidelity_line(const struct replay_session *s);

#endif
