// Fuzzes call sites. The target reads the payload of a SITES frame, or definitions as in traces,
// and writes them again.
#include "workload/sites.h"

#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void need(bool ok)
{
    if (!ok)
        abort();
}

static void need_same(const struct workload_sites *a, const struct workload_sites *b)
{
    need(a->n_modules == b->n_modules && a->n_sites == b->n_sites);
    for (size_t i = 0; i < a->n_modules; i++) {
        const struct workload_module *x = &a->modules[i], *y = &b->modules[i];
        need(x->start == y->start && x->bytes == y->bytes && x->offset == y->offset);
        need(strcmp(x->build_id, y->build_id) == 0 && strcmp(x->path, y->path) == 0);
    }
    for (size_t i = 0; i < a->n_sites; i++) {
        need(a->sites[i].n == b->sites[i].n);
        for (uint32_t k = 0; k < a->sites[i].n; k++) {
            const struct workload_frame *x = &a->frames[a->sites[i].first + k],
                                        *y = &b->frames[b->sites[i].first + k];
            need(x->address == y->address && x->module == y->module && x->module <= a->n_modules);
        }
    }
}

// Reads the written sites and compares them.
static void check_round_trip(const struct workload_sites *s)
{
    struct workload_sites again = {0};
    struct buf b = {0};
    size_t module = 0, site = 0;
    while (module < s->n_modules || site < s->n_sites) {
        b.size = 0;
        need(workload_sites_put(&b, s, &module, &site) == 0);
        need(workload_sites_get(b.data, b.size, &again) == 0);
    }
    need_same(s, &again);
    struct workload_sites copy = {0};
    need(workload_sites_copy_all(&copy, &again) == 0);
    need_same(&copy, &again);
    workload_sites_release(&copy);
    workload_sites_release(&again);
    buf_release(&b);
}

// Adds definitions. Each consists of a target (1 byte), a length (1 byte), and the text of a module
// or the addresses of a site.
static void define(struct workload_sites *s, const uint8_t *data, size_t n)
{
    while (n >= 2) {
        size_t size = data[1] < n - 2 ? data[1] : n - 2;
        const char *text = (const char *)data + 2;
        const struct workload_module where = {
            .start = (uint64_t)data[0] << 12, .bytes = 4096, .offset = data[1]};
        int rc = data[0] & 1 ? workload_sites_module(s, &where, text, size)
                             : workload_sites_define(s, 1 + data[0] / 2, text, (uint32_t)size / 8);
        need(rc == 0);
        data += 2 + size;
        n -= 2 + size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct workload_sites s = {0};
    if (n == 0)
        return 0;
    if (data[0] & 1) {
        define(&s, data + 1, n - 1);
        check_round_trip(&s);
    } else if (workload_sites_get(data + 1, n - 1, &s) == 0) {
        check_round_trip(&s);
    }
    workload_sites_release(&s);
    return 0;
}
