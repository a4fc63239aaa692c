// The call sites with the most bytes that are live at the end of a workload: live_sites FILE.htw
//     cc live_sites.c $(pkg-config --cflags --libs heaptape-trace)
#include <heaptape/trace.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 10 };

struct block {
    uint64_t bytes;
    uint32_t site;
};

struct site {
    uint64_t bytes;
    uint32_t number;
};

struct heap {
    struct block *blocks; // by slot
    size_t n;
};

static int more_first(const void *a, const void *b)
{
    const struct site *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1)
                                : (x->number > y->number) - (x->number < y->number);
}

// Applies an op to the heap. Returns 0, or -1 if memory is exhausted.
static int follow(struct heap *h, const heaptape_op *op)
{
    const uint32_t none = HEAPTAPE_OP_FAILED | HEAPTAPE_OP_SIZE_UNKNOWN;
    if (op->slot == HEAPTAPE_NONE32 || op->flags & HEAPTAPE_OP_FAILED)
        return 0;
    if (op->slot >= h->n) {
        size_t n = (op->slot + (size_t)1) * 2;
        struct block *blocks = realloc(h->blocks, n * sizeof *blocks);
        if (!blocks)
            return -1;
        memset(blocks + h->n, 0, (n - h->n) * sizeof *blocks);
        h->blocks = blocks;
        h->n = n;
    }
    // A free empties the slot; an allocation or resize fills it.
    struct block *b = &h->blocks[op->slot];
    *b = (struct block){0};
    if (heaptape_trace_allocates(op->operation) && !(op->flags & (none | HEAPTAPE_OP_FREED)))
        *b = (struct block){op->size, op->site};
    return 0;
}

static int print(heaptape_trace *t, const struct heap *h)
{
    uint32_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        n = h->blocks[i].site > n ? h->blocks[i].site : n;
    struct site *sites = calloc(n + (size_t)1, sizeof *sites);
    if (!sites)
        return -1;
    for (uint32_t i = 0; i <= n; i++)
        sites[i].number = i;
    for (size_t i = 0; i < h->n; i++)
        sites[h->blocks[i].site].bytes += h->blocks[i].bytes;
    qsort(sites, n + (size_t)1, sizeof *sites, more_first);
    for (uint32_t i = 0; i <= n && i < SHOWN && sites[i].bytes; i++) {
        const heaptape_frame *f;
        int found = sites[i].number ? heaptape_trace_site(t, 0, sites[i].number, &f) : 0;
        printf("%12" PRIu64 "  %s\n", sites[i].bytes, found > 0 ? f->function : "(not known)");
    }
    free(sites);
    return 0;
}

int main(int argc, char **argv)
{
    struct heap heap = {0};
    const heaptape_op *op;
    heaptape_trace *t;
    int rc, failed = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: live_sites FILE.htw\n");
        return 2;
    }
    rc = heaptape_trace_open(&t, argv[1]);
    while (rc >= 0 && !failed && (rc = heaptape_trace_next_op(t, &op)) > 0)
        failed = follow(&heap, op);
    if (rc == 0 && !failed)
        failed = print(t, &heap);
    if (rc < 0 || failed)
        fprintf(stderr, "live_sites: %s\n", failed ? "out of memory" : heaptape_trace_error(t));
    free(heap.blocks);
    heaptape_trace_close(t);
    return rc < 0 || failed;
}
