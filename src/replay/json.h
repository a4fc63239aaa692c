// The results of a session as JSON: docs/reference/json has the schemas.
#ifndef HEAPTAPE_REPLAY_JSON_H
#define HEAPTAPE_REPLAY_JSON_H

#include "base/json.h"
#include "replay/session.h"

// The document of `replay --json`, with and without --verify: the first result.
void replay_json(struct json *j, const struct replay_session *s);

// The document of `compare --json`: all results.
void replay_json_compare(struct json *j, const struct replay_session *s);

// Parts of these, for other documents: schema_version, workload and machine; the allocator of a result that has runs; a
// ratio and `key`_ci95, its interval.
void replay_json_head(struct json *j, const struct replay_session *s);
void replay_json_allocator(struct json *j, const struct replay_result *r);
void replay_json_ratio(struct json *j, const char *key, const struct measure_ratio *r);

#endif
