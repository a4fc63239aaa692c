// The calls of traces and workloads as exporters want them.
#ifndef HEAPTAPE_COMMANDS_EXPORT_CALL_H
#define HEAPTAPE_COMMANDS_EXPORT_CALL_H

#include "convert/walk.h"
#include "formats/export.h"
#include "workload/workload.h"

// The call is valid as long as what it is made of.
struct export_call export_call_from_walk(const struct trace_session *s, const struct walk_call *w);
struct export_call export_call_from_op(const struct workload_header *h, uint32_t thread, const struct workload_op *op);

#endif
