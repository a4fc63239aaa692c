// Options of `upload` and `record -o URL`.
#pragma once

#include "transfer/upload.h"

// For OPTION_PARSED: stores the region as const char *, or "" for the region in the environment.
int upload_options_parse_s3(const char *text, void *field);

// Loads libheaptape-upload.so and checks that the settings are complete. `s3` is NULL if --s3 is
// not given. Returns 0, or a negative errno with the message set.
int upload_options_complete(struct upload_settings *s, const char *s3, struct err *e);
