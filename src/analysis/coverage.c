#include "analysis/coverage.h"

#include "analysis/symbols/symbols.h"
#include "base/buf.h"
#include "base/sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void coverage_release(struct coverage *c)
{
    for (size_t i = 0; i < c->n_objects; i++)
        free(c->objects[i].path);
    free(c->objects);
    *c = (struct coverage){0};
}

static struct coverage_object *object_of(struct coverage *c, const char *path)
{
    for (size_t i = 0; i < c->n_objects; i++) {
        if (strcmp(c->objects[i].path, path) == 0)
            return &c->objects[i];
    }
    char *copy = strdup(path);
    if (!copy || HT_GROW(&c->objects, &c->objects_capacity, c->n_objects + 1) < 0) {
        free(copy);
        return NULL;
    }
    c->objects[c->n_objects] = (struct coverage_object){.path = copy};
    return &c->objects[c->n_objects++];
}

static void add_bytes(struct coverage_bytes *to, const struct coverage_bytes *more)
{
    to->allocated += more->allocated;
    to->at_peak += more->at_peak;
    to->at_end += more->at_end;
}

static int add_to_object(struct coverage *c, const char *path, const struct coverage_bytes *bytes)
{
    if (!bytes->allocated && !bytes->at_peak && !bytes->at_end)
        return 0;
    struct coverage_object *o = object_of(c, path);
    if (!o)
        return -ENOMEM;
    add_bytes(&o->bytes, bytes);
    o->sites++;
    return 0;
}

static const char *outermost_path(const struct workload_sites *sites,
                                  const struct workload_site *site)
{
    uint32_t module = site->n ? sites->frames[site->first + site->n - 1].module : 0;
    const char *path = module ? sites->modules[module - 1].path : "";
    return !site->n ? "[no stack]" : *path ? path : SYMBOLS_NO_FILE;
}

// Returns true if the stack begins in the dynamic loader, as in library constructors.
static bool begins_in_loader(const struct workload_sites *sites, const struct workload_site *site)
{
    const char *name = strrchr(outermost_path(sites, site), '/');
    return name && (strncmp(name, "/ld-", 4) == 0 || strncmp(name, "/ld.so", 6) == 0);
}

// Returns true if the stack begins in the C library, as in threads. The two outermost frames are
// start_thread and clone3. The C library has unwind tables, so the stack was not truncated there.
static bool begins_in_thread(const struct workload_sites *sites, const struct workload_site *site)
{
    static const char *const libraries[] = {"/libc.so.", "/libc-2.", "/libpthread"};
    uint32_t n = 0;
    for (bool found = true; found && n < site->n; n += found) {
        uint32_t module = sites->frames[site->first + site->n - 1 - n].module;
        const char *name = module ? strrchr(sites->modules[module - 1].path, '/') : NULL;
        found = false;
        for (size_t i = 0; name && i < sizeof libraries / sizeof *libraries; i++)
            found |= strncmp(name, libraries[i], strlen(libraries[i])) == 0;
    }
    return n == 2 && site->n > n;
}

static bool reaches_program(const struct workload_sites *sites, const struct workload_site *site,
                            const bool *own)
{
    for (uint32_t i = 0; i < site->n; i++) {
        if (own[sites->frames[site->first + i].module])
            return true;
    }
    return false;
}

const struct coverage_text coverage_texts[] = {
#define HT_X(other, name, allocated, rest) [COVERAGE_##other] = {name, allocated, rest},
    COVERAGE_OTHER_TABLE(HT_X)
#undef HT_X
};

const char *const coverage_runtime_names[] = {
#define HT_X(number, name) [COVERAGE_##number] = name,
    COVERAGE_RUNTIME_TABLE(HT_X)
#undef HT_X
};

static enum coverage_runtime runtime_of(const char *path)
{
    static const struct {
        const char *start; // start of the base name
        enum coverage_runtime runtime;
    } objects[] = {{"python3", COVERAGE_PYTHON},
                   {"libpython3", COVERAGE_PYTHON},
                   {"node", COVERAGE_NODE},
                   {"libnode.so", COVERAGE_NODE},
                   {"libjvm.so", COVERAGE_JAVA}};
    const char *name = basename(path);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        size_t n = strlen(objects[i].start);
        // Match "python3.11" and "libnode.so.108", but not "node_exporter".
        if (strncmp(name, objects[i].start, n) == 0 && (!name[n] || strchr(".0123456789", name[n])))
            return objects[i].runtime;
    }
    return COVERAGE_RUNTIMES;
}

// If a function of the stack belongs to an interpreter, adds the stack to that interpreter.
// `runtimes` is indexed by module number.
static void add_interpreted(struct coverage *c, const struct workload_sites *sites,
                            const struct workload_site *site, const struct names_index *names,
                            const enum coverage_runtime *runtimes, uint64_t bytes)
{
    enum coverage_runtime runtime = COVERAGE_RUNTIMES;
    bool named = false;
    for (uint32_t i = 0; i < site->n; i++) {
        const struct workload_frame *f = &sites->frames[site->first + i];
        runtime = runtimes[f->module] < runtime ? runtimes[f->module] : runtime;
        named |= workload_sites_is_made(sites, f) && workload_sites_made_name(names, f);
    }
    if (runtime == COVERAGE_RUNTIMES)
        return;
    c->interpreted[runtime].allocated += bytes;
    c->interpreted[runtime].named += named ? bytes : 0;
}

static int find_interpreted(struct coverage *c, const struct by_site *b,
                            const struct workload_sites *sites)
{
    struct names_index names;
    enum coverage_runtime *runtimes = calloc(sites->n_modules + 1, sizeof *runtimes);
    int rc = runtimes ? names_index_init(&names, &sites->names) : -ENOMEM;
    if (rc < 0) {
        free(runtimes);
        return rc;
    }
    runtimes[0] = COVERAGE_RUNTIMES;
    for (size_t i = 0; i < sites->n_modules; i++)
        runtimes[i + 1] = runtime_of(sites->modules[i].path);
    for (size_t i = 1; i < b->n_sites && i <= sites->n_sites; i++)
        add_interpreted(c, sites, &sites->sites[i - 1], &names, runtimes, b->sites[i].bytes);
    names_index_release(&names);
    free(runtimes);
    return 0;
}

int coverage_add(struct coverage *c, const struct by_site *b, const struct workload_sites *sites,
                 const char *exe)
{
    static const struct workload_site none;
    // Indexed by module number; entry 0 is for addresses outside all modules.
    bool *own = calloc(sites->n_modules + 1, sizeof *own);
    int rc = own ? 0 : -ENOMEM;
    bool began = false; // set when a site has reached the program; later sites have higher numbers
    for (size_t i = 0; own && i < sites->n_modules; i++)
        own[i + 1] = symbols_is_own(&sites->modules[i], exe);
    for (size_t i = 0; rc == 0 && i < b->n_sites; i++) {
        const struct by_site_totals *t = &b->sites[i];
        const struct workload_site *site = i && i <= sites->n_sites ? &sites->sites[i - 1] : &none;
        const struct coverage_bytes bytes = {t->bytes, t->peak_bytes, t->live_bytes};
        bool reached = reaches_program(sites, site, own);
        began |= reached;
        add_bytes(&c->all, &bytes);
        if (reached)
            add_bytes(&c->reached, &bytes);
        else if (!began && begins_in_loader(sites, site))
            add_bytes(&c->other[COVERAGE_LOADING], &bytes);
        else if (begins_in_thread(sites, site))
            add_bytes(&c->other[COVERAGE_THREADS], &bytes);
        else if (i == 0 && !bytes.allocated)
            add_bytes(&c->other[COVERAGE_BEFORE], &bytes);
        else
            rc = add_to_object(c, outermost_path(sites, site), &bytes);
    }
    c->known = true;
    c->sample_bytes = b->sample_bytes;
    free(own);
    return rc < 0 ? rc : find_interpreted(c, b, sites);
}

int coverage_add_unknown(struct coverage *c, const struct coverage_bytes *bytes)
{
    add_bytes(&c->all, bytes);
    return add_to_object(c, "[no stack]", bytes);
}

void coverage_finish(struct coverage *c)
{
    HT_SORT(c->objects, c->n_objects, SORT_DOWN(struct coverage_object, bytes.allocated),
            SORT_DOWN(struct coverage_object, bytes.at_peak));
}

unsigned coverage_permille(uint64_t reached, uint64_t all)
{
    return all ? (unsigned)((unsigned __int128)reached * 1000 / all) : 1000;
}
