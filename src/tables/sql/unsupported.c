#include "tables/sql/sql.h"

#include <errno.h>

int sql_run(const struct sql_settings *s, struct err *e)
{
    (void)s;
    return err_set(e, -ENOTSUP,
                   "was built without SQLite: install libsqlite3-dev and build it again");
}
