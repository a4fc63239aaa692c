#include "commands/slice_point.h"
#include "cli/options.h"
#include "cli/span.h"

#include <errno.h>
#include <string.h>

int slice_point_parse(const char *text, struct slice_point *p)
{
    *p = (struct slice_point){SLICE_AT_EDGE, 0, NULL};
    if (!text)
        return 0;
    if (strncmp(text, "mark:", 5) == 0) {
        *p = (struct slice_point){SLICE_AT_MARK, 0, text + 5};
        return 0;
    }
    p->at = SLICE_AT_EVENT;
    if (options_parse_number(text, &p->number) == 0)
        return 0;
    p->at = SLICE_AT_TIME;
    return span_parse(text, &p->number) < 0 ? -EINVAL : 0;
}
