// Options of `upload`, and of `record -o URL`.
#ifndef HEAPTAPE_TRANSFER_UPLOAD_OPTIONS_H
#define HEAPTAPE_TRANSFER_UPLOAD_OPTIONS_H

#include "transfer/upload.h"

#define UPLOAD_TOKEN_HELP                                                                                              \
    "send the token in the first line of FILE, which is read again for each request, as 'Authorization: Bearer TOKEN'"
#define UPLOAD_S3_HELP                                                                                                 \
    "sign requests for S3, for REGION or $AWS_REGION, with $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and "            \
    "$AWS_SESSION_TOKEN"
#define UPLOAD_ENVIRONMENT                                                                                                                                               \
    "CURL_CA_BUNDLE names a file with the certificates that https:// is verified with, in the place of the system's: for a "                                             \
    "server with a certificate that signs itself, that certificate. http_proxy, https_proxy, all_proxy and no_proxy apply as for curl. Without a token and --s3, names " \
    "and passwords come from ~/.netrc. Redirections are not followed."

// OPTION_PARSED: a region, or "" for that of the environment, to const char *.
int upload_options_parse_s3(const char *text, void *field);

// Loads what makes requests, and checks that the settings have what it needs. `s3` is NULL without --s3. 0 or a negative errno with
// the text set.
int upload_options_complete(struct upload_settings *s, const char *s3, struct err *e);

#endif
