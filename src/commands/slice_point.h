// Points of a workload on the command line.
#ifndef HEAPTAPE_COMMANDS_SLICE_POINT_H
#define HEAPTAPE_COMMANDS_SLICE_POINT_H

#include "workload/slice.h"

// "1200" (an event), "1.5s" (a time), "mark:TEXT"; NULL: the edge. *p borrows from `text`. 0 or -EINVAL.
int slice_point_parse(const char *text, struct slice_point *p);

#endif
