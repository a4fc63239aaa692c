// The part of follow.h for aggregates.
#ifndef HEAPTAPE_TOP_FOLLOW_AGGREGATE_H
#define HEAPTAPE_TOP_FOLLOW_AGGREGATE_H

#include "report/top/follow.h"

// Reads the file if it was rewritten since the last reading. Sets the rates since that reading.
// Returns 0, or a negative errno with the message set.
int follow_read_aggregate(struct follow *f, struct err *e);

#endif
