// Options of `upload`, and of `record -o URL`.
#ifndef HEAPTAPE_TRANSFER_UPLOAD_OPTIONS_H
#define HEAPTAPE_TRANSFER_UPLOAD_OPTIONS_H

#include "transfer/upload.h"

// OPTION_PARSED: a region, or "" for that of the environment, to const char *.
int upload_options_parse_s3(const char *text, void *field);

// Loads what makes requests, and checks that the settings have what it needs. `s3` is NULL without --s3. 0 or a negative errno with
// the text set.
int upload_options_complete(struct upload_settings *s, const char *s3, struct err *e);

#endif
