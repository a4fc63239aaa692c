// What the file of one command does for another command.
#ifndef HEAPTAPE_COMMANDS_PARTS_H
#define HEAPTAPE_COMMANDS_PARTS_H

#include "report/sites_diff.h"
#include "workload/slice.h"

// slice.c: "1200" (an event), "1.5s" (a time), "mark:TEXT"; NULL: the edge. *p borrows from `text`. 0 or -EINVAL.
int command_parse_point(const char *text, struct slice_point *p);

// diff.c: prints the call sites that changed, up to `top`; 0: all. Nothing where none did.
void command_print_sites(const struct sites_diff *d, uint64_t top);

#endif
