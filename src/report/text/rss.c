#include "report/text/stat.h"

#include "cli/command.h"
#include "report/text/fragmentation.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// Minimum percentages of RSS for which a sentence is printed.
enum {
    MUCH_FREE = 25,
    MUCH_STRANDED = 10,
    MUCH_NOT_HEAP = 50,
    MUCH_NOT_RESIDENT = 10,
    FAR_OFF = 5,
    TOP_ARENAS = 8
};

static double percent(uint64_t n, uint64_t of)
{
    return of ? 100.0 * (double)n / (double)of : 0;
}

static void print_part(const struct rss *r, const char *label, uint64_t bytes)
{
    printf("%-24s %12s %6.1f %%\n", label, human_size(bytes), percent(bytes, r->pages.rss_bytes));
}

static void print_parts(const struct rss *r)
{
    static const char *const parts[] = {"live",
                                        "+ internal rounding",
                                        "+ partly free pages",
                                        "+ wholly free pages",
                                        "+ allocator's own",
                                        "+ not heap"};
    static const char *const kinds[] = {"  brk area", "  other mappings", "  stack",
                                        "  files",    "  shared memory",  "  recording's own",
                                        "  other"};
    for (unsigned i = 0; i < RSS_PARTS; i++) {
        bool unknown = !r->maps && (i == RSS_WHOLLY_FREE || i == RSS_NOT_HEAP);
        if (!unknown)
            print_part(r, parts[i], r->all.bytes[i]);
    }
    for (unsigned kind = 0; r->maps && kind < TRACE_MEMORY_KINDS; kind++) {
        if (r->not_heap[kind])
            print_part(r, kinds[kind], r->not_heap[kind]);
    }
    if (!r->maps)
        print_part(r, "+ not known", r->all.bytes[RSS_NOT_HEAP]);
    print_part(r, "= sum", rss_sum(r));
    print_part(r, "RSS as sampled", r->pages.rss_bytes);
}

static uint64_t not_resident(const struct rss *r)
{
    uint64_t resident = r->all.bytes[RSS_LIVE];
    return r->maps && r->all.live_bytes > resident ? r->all.live_bytes - resident : 0;
}

// Prints a sentence. Before the first sentence, prints an empty line.
static __attribute__((format(printf, 2, 3))) void print_sentence(bool *any, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (!*any)
        putchar('\n');
    *any = true;
    vprintf(fmt, args);
    va_end(args);
}

static void print_sentences(const struct rss *r)
{
    bool any = false;
    uint64_t rss = r->pages.rss_bytes, sum = rss_sum(r), off = sum > rss ? sum - rss : rss - sum;
    if (percent(r->all.bytes[RSS_WHOLLY_FREE], rss) >= MUCH_FREE)
        print_sentence(&any, "The allocator keeps %s in pages without any live block.\n",
                       human_size(r->all.bytes[RSS_WHOLLY_FREE]));
    if (percent(r->pinned.stranded_bytes, rss) >= MUCH_STRANDED)
        print_sentence(&any, "Live blocks pin %s sparse pages, in which %s is free.\n",
                       human_number(r->pinned.sparse_pages), human_size(r->pinned.stranded_bytes));
    if (r->maps && percent(r->all.bytes[RSS_NOT_HEAP], rss) > MUCH_NOT_HEAP)
        print_sentence(&any, "More than half of RSS is outside of the heap.\n");
    if (not_resident(r) && percent(not_resident(r), r->all.live_bytes) >= MUCH_NOT_RESIDENT)
        print_sentence(&any, "%s of %s live is not resident: never written, or swapped out.\n",
                       human_size(not_resident(r)), human_size(r->all.live_bytes));
    if (r->maps && percent(off, rss) > FAR_OFF)
        print_sentence(
            &any,
            "The sum differs from RSS by %.1f %%: the program kept running while its pages\n"
            "were read.\n",
            percent(off, rss));
    if (!r->maps)
        print_sentence(
            &any, "There are no maps of pages (record --no-pages, a process that ended soon, or a\n"
                  "recording of an older heaptape): pages of live blocks count as resident, and\n"
                  "free pages cannot be distinguished from memory outside of the heap, which here\n"
                  "includes the memory of heaptape in the process.\n");
    if (!r->is_glibc && !r->has_usable)
        print_sentence(
            &any, "The rounding of this allocator is unknown without 'record --usable' and counts\n"
                  "as free.\n");
    if (r->is_last)
        print_sentence(&any,
                       "There is no map of pages at or after this point: this is the last one.\n");
}

static const char *arena_name(char text[64], const struct rss_arena *a)
{
    if (a->kind == RSS_ARENA_MAPPED)
        return "blocks mapped one by one";
    snprintf(text, 64, "%s 0x%" PRIx64,
             a->kind == RSS_ARENA_MAIN   ? "main heap"
             : a->kind == RSS_ARENA_HEAP ? "heap"
                                         : "mapping",
             a->start);
    return text;
}

static uint64_t resident_bytes(const struct rss_counts *c)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < RSS_NOT_HEAP; i++)
        sum += c->bytes[i];
    return sum;
}

static int by_resident(const void *a, const void *b)
{
    uint64_t x = resident_bytes(&(*(const struct rss_arena *const *)a)->counts);
    uint64_t y = resident_bytes(&(*(const struct rss_arena *const *)b)->counts);
    return x < y ? 1 : x > y ? -1 : 0;
}

static void print_arenas(const struct rss *r)
{
    const struct rss_arena **sorted = calloc(r->n_arenas + 1, sizeof *sorted);
    for (size_t i = 0; sorted && i < r->n_arenas; i++)
        sorted[i] = &r->arenas[i];
    if (!sorted || !r->maps || !r->n_arenas) {
        free(sorted);
        return;
    }
    qsort(sorted, r->n_arenas, sizeof *sorted, by_resident);
    cli_table_head("\n%10s %10s %11s %11s %8s  %s", "resident", "live", "partly free",
                   "wholly free", "blocks", "arena");
    for (size_t i = 0; i < r->n_arenas && i < TOP_ARENAS; i++) {
        char name[64];
        const struct rss_counts *c = &sorted[i]->counts;
        printf("%10s %10s %11s %11s %8s  %s\n", human_size(resident_bytes(c)),
               human_size(c->bytes[RSS_LIVE]), human_size(c->bytes[RSS_PARTLY_FREE]),
               human_size(c->bytes[RSS_WHOLLY_FREE]), human_number(c->blocks),
               arena_name(name, sorted[i]));
    }
    if (r->n_arenas > TOP_ARENAS)
        printf("... %zu more (--json has all)\n", r->n_arenas - TOP_ARENAS);
    free(sorted);
}

static void print_value(const char *label, const char *value)
{
    printf("%-24s %12s\n", label, value);
}

static void print_pages(const struct rss *r)
{
    putchar('\n');
    print_value("page size", human_size(r->pages.page_bytes));
    print_value("pages half used or more", human_number(r->all.used_pages));
    print_value("sparse pages", human_number(r->all.sparse_pages));
    if (r->maps)
        print_value("wholly free pages", human_number(r->all.free_pages));
}

static void print_sampled(const struct rss *r)
{
    const struct trace_pages *p = &r->pages;
    if (!r->maps)
        return;
    print_value("\nPSS", human_size(p->pss_bytes));
    print_value("swapped out", human_size(p->swap_bytes));
    print_value("in huge pages", human_size(p->huge_bytes));
    print_value("minor page faults", human_number(p->minor_faults));
    print_value("major page faults", human_number(p->major_faults));
    print_value("CPU time", human_time((double)p->cpu_ns));
    if (p->cgroup_bytes != TRACE_PAGES_UNKNOWN)
        print_value("memory of its cgroup", human_size(p->cgroup_bytes));
    if (p->cgroup_limit_bytes != TRACE_PAGES_UNKNOWN)
        print_value("  limit", human_size(p->cgroup_limit_bytes));
}

void stat_print_rss(const struct rss *r)
{
    printf("process %u: RSS %s, %s after its start", r->pid, human_size(r->pages.rss_bytes),
           human_time((double)r->time_ns));
    if (r->maps)
        printf(" (%zu map%s of its pages)", r->maps, r->maps == 1 ? "" : "s");
    puts("\n");
    print_parts(r);
    print_sentences(r);
    print_pages(r);
    print_arenas(r);
    if (r->pinned.stranded_bytes)
        putchar('\n');
    fragmentation_print(&r->pinned, r->symbols);
    print_sampled(r);
}
