// A session's results as JSON. The schemas are in docs/reference/json.
#ifndef HEAPTAPE_REPLAY_JSON_H
#define HEAPTAPE_REPLAY_JSON_H

#include "base/json.h"
#include "replay/session.h"

// Writes the `replay --json` document, with or without --verify: the first result.
void replay_json(struct json *j, const struct replay_session *s);

// Writes the `compare --json` document: all results.
void replay_json_compare(struct json *j, const struct replay_session *s);

// Parts for use in other documents: schema_version, workload and machine; a result's allocator with
// its runs; a ratio with its interval, `key`_ci95.
void replay_json_head(struct json *j, const struct replay_session *s);
void replay_json_allocator(struct json *j, const struct replay_result *r);
void replay_json_ratio(struct json *j, const char *key, const struct measure_ratio *r);

#endif
