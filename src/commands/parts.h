// Functions of one command that other commands use.
#ifndef HEAPTAPE_COMMANDS_PARTS_H
#define HEAPTAPE_COMMANDS_PARTS_H

#include "cli/command.h"
#include "report/sites_diff.h"
#include "workload/slice.h"

// Defined in slice.c. Parses a point: "1200" (an event), "1.5s" (a time) or "mark:TEXT". If `text`
// is NULL, sets no limit. *p borrows from `text`. Returns 0 or -EINVAL.
int command_parse_point(const char *text, struct slice_point *p);
extern const struct command_word command_points[]; // help on the syntax of points

// Defined in diff.c. Prints up to `top` call sites that changed, or all such call sites if `top` is
// 0. Prints no table if no call site changed.
void command_print_sites(const struct sites_diff *d, uint64_t top);

#endif
