// The segments of a recording (record --segment) as the one trace that they are pieces of.
#ifndef HEAPTAPE_TRACE_JOIN_H
#define HEAPTAPE_TRACE_JOIN_H

#include "base/fio.h"

// Puts the segments in the folder `path`, the files NAME.ht and NAME.ht.part, together in a file without a name in $TMPDIR or
// /tmp, which *in reads; its name is `path`, borrowed. The first segments may have been removed: then the trace begins with
// the blocks that were live. 0 or a negative errno with the text set: -EBADMSG when a segment is missing in between, or of
// another recording; -EISDIR when there is none.
int trace_join(struct input *in, const char *path, struct err *e);

#endif
