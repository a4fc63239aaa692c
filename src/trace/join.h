// Joins the segments of a recording (record --segment) into one trace.
#pragma once

#include "base/fio.h"

// Joins the segments NAME.ht and NAME.ht.part in the directory `path` into an unnamed file in
// $TMPDIR or /tmp, and opens that file as *in. The name of *in is `path`, which is borrowed. If the
// first segments were removed, the trace starts with the blocks that were live when the first
// remaining segment began. Returns 0, or a negative errno with the message set: -EBADMSG if a
// segment is missing or belongs to another recording, -EISDIR if the directory has no segments.
int trace_join(struct input *in, const char *path, struct err *e);
