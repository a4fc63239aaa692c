// Writer of jemalloc's and gperftools' heap profiles, with names: the format that 'jeprof --raw'
// writes and that jeprof and pprof read without the program.
#include "report/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Frames are numbered instead of addressed. The tool subtracts 1 from the address of each caller,
// so each frame has two numbers: an odd number as a caller, and the next even number as the
// innermost frame.
static uint32_t number_of(uint32_t frame)
{
    return 2 * (frame + 1);
}

// Prints a name without "--", which separates inlined functions, without line feeds, and without
// parentheses around the whole name, because the tool removes parentheses with their text.
static void print_name(FILE *to, const char *name)
{
    if (strcmp(name, "(unknown)") == 0)
        name = "unknown";
    for (; *name; name++) {
        if (name[0] != '-' || name[1] != '-')
            putc(*name == '\n' ? ' ' : *name, to);
    }
    putc('\n', to);
}

static void print_symbols(FILE *to, const struct profile_stacks *t, const char *program)
{
    fprintf(to, "--- symbol\nbinary=");
    print_name(to, program);
    for (uint32_t i = 0; i < t->n_frames; i++) {
        for (uint32_t number = number_of(i) - 1; number <= number_of(i); number++) {
            fprintf(to, "0x%" PRIx32 " ", number);
            print_name(to, t->frames[i].function);
        }
    }
    fprintf(to, "---\n--- heap\n");
}

static void print_totals(FILE *to, const struct by_site_totals *t, enum profile_weight weight)
{
    bool at_end = weight == PROFILE_LIVE;
    fprintf(to, "%" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "] @",
            at_end ? t->live_blocks : t->peak_blocks, at_end ? t->live_bytes : t->peak_bytes,
            t->calls, t->bytes);
}

int profile_jeprof(FILE *to, const struct profile_json_of *of)
{
    const struct by_site *b = of->totals;
    struct by_site_totals sum = {0};
    struct profile_stacks t = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < b->n_sites; i++) {
        sum.calls += b->sites[i].calls;
        sum.bytes += b->sites[i].bytes;
        sum.peak_blocks += b->sites[i].peak_blocks;
        sum.peak_bytes += b->sites[i].peak_bytes;
        sum.live_blocks += b->sites[i].live_blocks;
        sum.live_bytes += b->sites[i].live_bytes;
        rc = profile_stacks_add(&t, i, of->symbols, 0);
    }
    if (rc == 0) {
        print_symbols(to, &t, of->name);
        fprintf(to, "heap profile: ");
        print_totals(to, &sum, of->weight);
        fprintf(to, " heapprofile\n");
    }
    for (size_t i = 0; rc == 0 && i < b->n_sites; i++) {
        print_totals(to, &b->sites[i], of->weight);
        for (uint32_t s = t.samples[i].stack; s != PROFILE_NO_STACK; s = t.stacks[s].prefix)
            fprintf(to, " 0x%" PRIx32, number_of(t.stacks[s].frame));
        putc('\n', to);
    }
    profile_stacks_release(&t);
    return rc;
}
