// Tests that an import of an exported file reproduces the exported calls.
#pragma once

#include "base/err.h"
#include "formats/formats.h"

#include <stdbool.h>
#include <stdint.h>

// Exports the trace or workload at `from`, imports the output as a workload, and exports this
// workload. Both exports must write the same calls: kinds, sizes, alignments and blocks, and the
// threads, times, failures and notes that the format can contain.
// Returns 0 if they are equal, 1 if not, with the first difference in *e, or a negative errno if
// the input cannot be exported.
int round_trip(const char *from, const struct format *f, bool stamps, struct err *e);

// Exports the trace of several processes and imports the process `pid`. The result must have the
// same calls as `workload`, which was converted from the trace. Returns 0 if they are equal, 1 if
// not, with the first difference in *e, or a negative errno: -ENOTSUP if the output holds only one
// process.
int round_trip_process(const char *trace, const char *workload, uint32_t pid,
                       const struct format *f, struct err *e);
