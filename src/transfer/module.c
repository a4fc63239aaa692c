#include "transfer/module.h"

#include "cli/paths.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>

void *module_load(const char *library, const char *function, const char *package, struct err *e)
{
    char path[PATH_MAX];
    if (paths_find(library, path, sizeof path) < 0) {
        err_set(e, -ENOTSUP, "%s: not found; install %s and build heaptape again", library,
                package);
        return NULL;
    }
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *found = loaded ? dlsym(loaded, function) : NULL;
    if (!found)
        err_set(e, -ENOTSUP, "%s: cannot be loaded: %s", library, dlerror());
    return found;
}
