// A session's results as JSON. The schemas are in docs/reference/json.
#pragma once

#include "base/json.h"
#include "replay/session.h"

// Writes the `replay --json` document, which contains the first result. With --verify, the document
// contains the outcome of the checks instead.
void replay_json(struct json *j, const struct replay_session *s);

// Writes the `compare --json` document, which contains all results.
void replay_json_compare(struct json *j, const struct replay_session *s);

// Write parts of other documents. replay_json_head begins the document and writes workload and
// machine. The other three write a result's allocator and its runs; the member "real" (the
// program's runs, or null); and a ratio with its confidence interval, `key`_ci95.
void replay_json_head(struct json *j, const struct replay_session *s);
void replay_json_allocator(struct json *j, const struct replay_result *r);
void replay_json_real(struct json *j, const struct replay_session *s,
                      const struct replay_result *r);
void replay_json_ratio(struct json *j, const char *key, const struct measure_ratio *r);
