// The calls of traces and workloads as exporters want them.
#ifndef HEAPTAPE_COMMANDS_EXPORT_CALL_H
#define HEAPTAPE_COMMANDS_EXPORT_CALL_H

#include "convert/walk.h"
#include "formats/export.h"
#include "workload/workload.h"

// The call is valid as long as what it is made of.
struct call export_call_of_walk(const struct trace_session *s, const struct walk_call *w);
struct call export_call_of_op(const struct workload_header *h, uint32_t thread, const struct workload_op *op);

#endif
