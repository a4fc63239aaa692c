#include "transfer/upload_options.h"

#include "transfer/module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int upload_options_parse_s3(const char *text, void *field)
{
    const char **region = field;
    *region = text;
    return strlen(text) > 64 ||
                   strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(text)
               ? -EINVAL
               : 0;
}

static const char *choose_region(const char *s3)
{
    const char *region = *s3 ? s3 : getenv("AWS_REGION");
    region = region && *region ? region : getenv("AWS_DEFAULT_REGION");
    return region && *region ? region : NULL;
}

int upload_options_complete(struct upload_settings *s, const char *s3, struct err *e)
{
    s->s3_region = s3 ? choose_region(s3) : NULL;
    if (s3 && (!s->s3_region || upload_options_parse_s3(s->s3_region, &s->s3_region) < 0))
        return err_set(e, -EINVAL, "--s3 needs a region: --s3=REGION or AWS_REGION");
    if (s3 && s->token_file)
        return err_set(e, -EINVAL, "--s3 and a token exclude each other");
    s->calls = module_load(REQUEST_LIBRARY, "request_calls", REQUEST_PACKAGE, e);
    const struct request_settings how = {.token_file = s->token_file, .s3_region = s->s3_region};
    return s->calls ? s->calls->check(&how, e) : -ENOTSUP;
}
