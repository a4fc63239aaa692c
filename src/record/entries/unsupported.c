// Stubs for machines other than x86-64 and aarch64, whose instructions are not decoded.
#include "record/entries/plan.h"

#include <errno.h>

void entries_result_release(struct entries_result *r)
{
    *r = (struct entries_result){0};
}

int entries_plan_object(const struct entries_object *object, const struct entries_names *names,
                        struct entries_result *to, struct err *e)
{
    (void)names, (void)to;
    return err_set(e, -ENOTSUP,
                   "%s: heaptape redirects functions at their entries on x86-64 and aarch64 only",
                   object->path);
}

bool entries_have_symbols(const char *path)
{
    (void)path;
    return true;
}
