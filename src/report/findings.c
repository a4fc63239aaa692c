#include "report/findings.h"

#include "analysis/by_site.h"
#include "cli/human.h"
#include "report/json/stat_json.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// From which shares on something stands out.
#define GROWTH_SHARE       0.1   // of the bytes live at the end
#define SHORT_SHARE        0.25  // of the freed blocks
#define NEVER_SHARE        0.5   // of the peak
#define MOVED_SHARE        0.5   // of growing reallocs
#define COPIED_SHARE       0.01  // of requested bytes
#define TOP_SHARE          0.5   // of requests have one of 5 sizes
#define ROUNDING_SHARE     0.1   // of requested bytes
#define ABOVE_SHARE        0.01  // of requested bytes
#define REMOTE_SHARE       0.05  // of freed blocks
#define LARGE_SHARE        0.5   // of requested bytes
#define BIG_SHARE          0.1   // of requested bytes, in big blocks whose use was measured …
#define UNUSED_SHARE       0.75  // … and of these
#define SMALL_SHARE        0.3   // of requests
#define SIZE_SHARE         0.5   // of the peak in one class of sizes
#define ZEROED_SHARE       0.25  // of requested bytes
#define SITE_SHARE         0.2   // of the peak, of short-lived blocks, of remote frees
#define AMBIGUOUS_SHARE    0.001 // of events
#define UNEXPLAINED_SHARE  0.1   // of the bytes that malloc had in use
#define SHORT_STACKS_SHARE 0.01  // of allocated bytes
enum {
    GROWTH_BYTES = 16 << 10,
    REGROWN_BLOCKS = 10,
    LARGE_REQUESTS = 1000,
    LARGE_BYTES = 128 << 10,
    SMALL_BYTES = 16
};

static void put(char *text, size_t size, const char *fmt, va_list args)
{
    size_t n = strlen(text);
    vsnprintf(text + n, size - n, fmt, args);
}

void findings_say(struct findings_item *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put(f->text, sizeof f->text, fmt, args);
    va_end(args);
}

void findings_advise(struct findings_item *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    put(f->advice, sizeof f->advice, fmt, args);
    va_end(args);
}

char *findings_percent(char text[32], double share)
{
    if (share >= 0.0995 || !(share > 0))
        snprintf(text, 32, "%.0f %%", 100 * share);
    else
        snprintf(text, 32, "%.2g %%", 100 * share);
    return text;
}

static double number(const struct findings_input *in, const char *path)
{
    return json_value_number_at(in->stat, path);
}

// A member of the document, or of an object in it.
static const struct json_value *list(const struct findings_input *in, const char *object,
                                     const char *key)
{
    return json_value_get(object ? json_value_get(in->stat, object) : in->stat, key);
}

static double member(const struct json_value *items, size_t i, const char *key)
{
    return json_value_number_at(json_value_at(items, i), key);
}

static double sum_of(const struct json_value *items, const char *key)
{
    double sum = 0;
    for (size_t i = 0; i < json_value_length(items); i++)
        sum += member(items, i, key);
    return sum;
}

static double freed_blocks(const struct findings_input *in)
{
    return sum_of(list(in, "lifetimes", "by_events"), "count");
}

// The first frame of a site that is the program's own; else the innermost one. NULL: there is none.
static const struct json_value *own_frame(const struct json_value *site)
{
    const struct json_value *frames = json_value_get(site, "frames");
    for (size_t i = 0; i < json_value_length(frames); i++) {
        if (!json_value_bool(json_value_get(json_value_at(frames, i), "library")))
            return json_value_at(frames, i);
    }
    return json_value_at(frames, 0);
}

enum { FRAME_BYTES = 200 };

// A file's name without its folders.
static const char *text_of(const struct json_value *frame, const char *key)
{
    const char *text = json_value_string(json_value_get(frame, key));
    const char *slash = text && strcmp(key, "function") != 0 ? strrchr(text, '/') : NULL;
    return slash ? slash + 1 : text ? text : "";
}

// "render (server.cpp:44)".
static char *frame_text(char text[FRAME_BYTES], const struct json_value *frame)
{
    const char *function = text_of(frame, "function"), *file = text_of(frame, "file");
    enum { NAME_BYTES = 60 };
    // The arguments of a C++ function can be longer than a line.
    size_t bytes = strlen(function) > NAME_BYTES ? strcspn(function, "(<") : strlen(function);
    bytes = bytes ? bytes : NAME_BYTES;
    int n = snprintf(text, FRAME_BYTES, "%.*s",
                     (int)(bytes < 2 * NAME_BYTES ? bytes : 2 * NAME_BYTES), function);
    if (!function[0])
        n = snprintf(text, FRAME_BYTES, "an unknown function");
    if (file[0])
        snprintf(text + n, FRAME_BYTES - (size_t)n, " (%.60s:%.0f)", file,
                 json_value_number_at(frame, "line"));
    else if (text_of(frame, "module")[0])
        snprintf(text + n, FRAME_BYTES - (size_t)n, " (%.60s)", text_of(frame, "module"));
    return text;
}

// A line of the program, and by how much the sites that have it grow.
struct findings_line {
    char text[FRAME_BYTES];
    double bytes, freed; // freed blocks; NAN: not known
};

static int by_growth(const void *a, const void *b)
{
    const struct findings_line *x = a, *y = b;
    double left = by_site_growth_rank(x->bytes, x->freed),
           right = by_site_growth_rank(y->bytes, y->freed);
    return left < right ? 1 : left > right ? -1 : strcmp(x->text, y->text);
}

enum { LINES = 20, SHOWN_LINES = 4 };

static size_t growing_lines(const struct json_value *sites, struct findings_line lines[LINES])
{
    size_t n = 0;
    for (size_t i = 0; i < json_value_length(sites) && i < LINES; i++) {
        const struct json_value *site = json_value_at(sites, i), *frame = own_frame(site);
        size_t at = 0;
        if (!frame)
            continue;
        lines[n].bytes = lines[n].freed = 0;
        frame_text(lines[n].text, frame);
        while (strcmp(lines[at].text, lines[n].text) != 0)
            at++;
        n += at == n;
        lines[at].bytes += json_value_number_at(site, "steady_growth_bytes");
        lines[at].freed += json_value_number_at(site, "freed_blocks");
    }
    qsort(lines, n, sizeof *lines, by_growth);
    return n;
}

static bool find_growth(const struct findings_input *in, struct findings_item *f)
{
    struct findings_line lines[LINES];
    char t[32];
    double grown = 0;
    size_t n = growing_lines(list(in, "call_sites", "by_growth"), lines);
    for (size_t i = 0; i < n; i++)
        grown += lines[i].bytes;
    if (!(grown >= GROWTH_BYTES &&
          grown >= GROWTH_SHARE * number(in, "call_sites.live_at_end_bytes")))
        return false;
    findings_say(f, "Live bytes grow steadily over the run, by %s, allocated in",
                 human_bytes(t, (uint64_t)grown));
    for (size_t i = 0; i < n && i < SHOWN_LINES; i++)
        findings_say(
            f, "%s %s %s%s", i ? "," : "", lines[i].text, human_bytes(t, (uint64_t)lines[i].bytes),
            lines[i].freed > 0 || isnan(lines[i].freed) ? "" : " and none of its blocks freed");
    findings_say(f, n > SHOWN_LINES ? " and others." : ".");
    findings_advise(
        f,
        "In a program that goes on, each of these lines is a leak, or fills something that has not reached "
        "its limit: free what they allocate, or limit it.");
    return true;
}

static bool find_peak(const struct findings_input *in, struct findings_item *f)
{
    char bytes[32], blocks[32], percent[32], ns[32];
    const struct json_value *by_event = json_value_get(list(in, NULL, "timeline"), "by_event");
    const struct json_value *ends = json_value_get(by_event, "end_event");
    size_t n = json_value_length(ends);
    double all = n ? json_value_number(json_value_at(ends, n - 1)) : 0;
    if (!(number(in, "peak.bytes") > 0 && all > 0))
        return false;
    findings_say(f, "Live bytes peak at %s in %s blocks, after %s of the events",
                 human_bytes(bytes, (uint64_t)number(in, "peak.bytes")),
                 human_count(blocks, (uint64_t)number(in, "peak.blocks")),
                 findings_percent(percent, number(in, "peak.event") / all));
    if (!isnan(number(in, "peak.ns")))
        findings_say(f, ", %s after the start", human_ns(ns, number(in, "peak.ns")));
    findings_say(f, ".");
    return true;
}

// "33 B to 64 B".
static void class_text(char text[80], double max_bytes)
{
    char above[32], max[32];
    if (isnan(max_bytes))
        snprintf(text, 80, "over 8.0 GiB");
    else if (max_bytes <= 8)
        snprintf(text, 80, "up to 8 B");
    else
        snprintf(text, 80, "%s to %s",
                 human_bytes(above, (uint64_t)max_bytes / 2 + (max_bytes <= 1024)),
                 human_bytes(max, (uint64_t)max_bytes));
}

static bool find_peak_of_a_size(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *sizes = list(in, NULL, "sizes");
    char class[80], percent[32], blocks[32];
    size_t most = 0;
    for (size_t i = 0; i < json_value_length(sizes); i++)
        most = member(sizes, i, "live_at_peak_bytes") > member(sizes, most, "live_at_peak_bytes")
                   ? i
                   : most;
    double part = member(sizes, most, "live_at_peak_bytes") / number(in, "peak.bytes");
    if (!(part >= SIZE_SHARE))
        return false;
    class_text(class, member(sizes, most, "max_bytes"));
    findings_say(f, "%s of the peak is in blocks of %s, %s of them.",
                 findings_percent(percent, part), class,
                 human_count(blocks, (uint64_t)member(sizes, most, "live_at_peak_blocks")));
    findings_advise(f, "Reduce the number or size of blocks of %s.", class);
    return true;
}

// The first site of a list, if it has that share of `all`.
static const struct json_value *first_site(const struct findings_input *in, const char *sites,
                                           const char *key, double all, double least_share)
{
    const struct json_value *items = list(in, "call_sites", sites);
    const struct json_value *site = json_value_length(items) ? json_value_at(items, 0) : NULL;
    return all > 0 && json_value_number_at(site, key) >= least_share * all && own_frame(site)
               ? site
               : NULL;
}

static bool find_peak_of_a_site(const struct findings_input *in, struct findings_item *f)
{
    double peak = number(in, "call_sites.peak_live_bytes");
    const struct json_value *site =
        first_site(in, "at_peak", "live_at_peak_bytes", peak, SITE_SHARE);
    char frame[FRAME_BYTES], percent[32], bytes[32];
    if (!site)
        return false;
    double part = json_value_number_at(site, "live_at_peak_bytes");
    findings_say(f, "%s of the peak, %s, comes from one call site: %s.",
                 findings_percent(percent, part / peak), human_bytes(bytes, (uint64_t)part),
                 frame_text(frame, own_frame(site)));
    findings_advise(f, "Allocate less in %.100s, or free it earlier.",
                    text_of(own_frame(site), "function"));
    return true;
}

static bool find_copied_growth(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *site =
        first_site(in, "by_regrown", "regrown_bytes", number(in, "requests.bytes"), COPIED_SHARE);
    char frame[FRAME_BYTES], blocks[32], bytes[32];
    if (!site || !(json_value_number_at(site, "regrown_blocks") >= REGROWN_BLOCKS))
        return false;
    findings_say(
        f,
        "%s blocks, %s in all, are replaced at once by a larger one of the same call site, as a std::vector or "
        "std::string does when it grows: %s.",
        human_count(blocks, (uint64_t)json_value_number_at(site, "regrown_blocks")),
        human_bytes(bytes, (uint64_t)json_value_number_at(site, "regrown_bytes")),
        frame_text(frame, own_frame(site)));
    findings_advise(f, "Reserve the final size first, or grow by a larger factor.");
    return true;
}

static bool find_realloc_moves(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *factors = list(in, "realloc", "growth_factors");
    char moved_text[32], copied[32], small[32];
    double moved = number(in, "realloc.grown_moved.count"),
           all = moved + number(in, "realloc.grown_in_place.count");
    double bytes = number(in, "realloc.grown_moved.bytes");
    if (!(all > 0 && moved >= MOVED_SHARE * all &&
          bytes >= COPIED_SHARE * number(in, "requested_bytes")))
        return false;
    double quarter = member(factors, 0, "count") + member(factors, 1, "count");
    findings_say(
        f,
        "%s of the growing reallocs moved the block and copied %s; %s of the growing reallocs grew it by a quarter "
        "or less.",
        findings_percent(moved_text, moved / all), human_bytes(copied, (uint64_t)bytes),
        findings_percent(small, quarter / all));
    findings_advise(f, "Grow by a factor of 1.5 or 2, or request the final size at once.");
    return true;
}

static double short_lived_blocks(const struct findings_input *in)
{
    const struct json_value *rows = list(in, NULL, "short_lived");
    for (size_t i = 0; i < json_value_length(rows); i++) {
        double events = member(rows, i, "within_events");
        if (events >= SITE_USES_SHORT_EVENTS && events <= SITE_USES_SHORT_EVENTS)
            return member(rows, i, "count");
    }
    return NAN;
}

static bool find_short_lived(const struct findings_input *in, struct findings_item *f)
{
    double freed = freed_blocks(in), part = short_lived_blocks(in) / freed;
    char percent[32];
    if (!(freed > 0 && part >= SHORT_SHARE))
        return false;
    findings_say(f, "%s of the freed blocks live for at most 8 events.",
                 findings_percent(percent, part));
    findings_advise(f, "Use buffers on the stack, or reuse them.");
    return true;
}

// A site's part of what another finding is about.
static bool find_part(const struct findings_input *in, struct findings_item *f, const char *sites,
                      const char *key, double all)
{
    const struct json_value *site = first_site(in, sites, key, all, SITE_SHARE);
    char frame[FRAME_BYTES], percent[32];
    if (!site)
        return false;
    findings_say(f, "%s are allocated in %s.",
                 findings_percent(percent, fmin(1, json_value_number_at(site, key) / all)),
                 frame_text(frame, own_frame(site)));
    return true;
}

static bool find_short_lived_of_a_site(const struct findings_input *in, struct findings_item *f)
{
    struct findings_item unused = {0};
    findings_say(f, "Of the blocks that live for at most 8 events, ");
    return find_short_lived(in, &unused) &&
           find_part(in, f, "by_short_lived", "short_lived_blocks", short_lived_blocks(in));
}

static bool find_remote_frees(const struct findings_input *in, struct findings_item *f)
{
    double part = number(in, "remote_frees") / freed_blocks(in);
    char percent[32];
    if (!(part >= REMOTE_SHARE && isfinite(part)))
        return false;
    findings_say(
        f,
        "%s of the blocks are freed or resized by another thread than the one that allocated them.",
        findings_percent(percent, part));
    findings_advise(
        f,
        "Allocators differ most in remote frees: compare them, and look at the table of frees between threads.");
    return true;
}

static bool find_remote_frees_of_a_site(const struct findings_input *in, struct findings_item *f)
{
    struct findings_item unused = {0};
    findings_say(f, "Of the blocks that another thread frees, ");
    return find_remote_frees(in, &unused) &&
           find_part(in, f, "by_remote_frees", "remotely_freed_blocks", number(in, "remote_frees"));
}

static bool find_large_requests(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *sizes = list(in, NULL, "sizes");
    double count = 0, bytes = 0;
    char t[2][32];
    for (size_t i = 0; i < json_value_length(sizes); i++) {
        if (member(sizes, i, "max_bytes") <= LARGE_BYTES)
            continue;
        count += member(sizes, i, "count");
        bytes += member(sizes, i, "bytes");
    }
    double part = bytes / number(in, "requests.bytes");
    if (!(part >= LARGE_SHARE && count >= LARGE_REQUESTS))
        return false;
    findings_say(f, "%s requests over 128 KiB account for %s of the requested bytes.",
                 human_count(t[0], (uint64_t)count), findings_percent(t[1], part));
    findings_advise(
        f,
        "Each may cost an mmap and page faults: raise the mmap threshold, or reuse the buffers.");
    return true;
}

static bool find_few_sizes(const struct findings_input *in, struct findings_item *f)
{
    enum { SIZES = 5 };
    const struct json_value *top = list(in, "top_sizes", "by_count");
    double count = 0;
    char t[32];
    for (size_t i = 0; i < SIZES && json_value_length(top) >= SIZES; i++)
        count += member(top, i, "count");
    double part = count / number(in, "requests.sized");
    if (!(part >= TOP_SHARE))
        return false;
    findings_say(f, "Five sizes (");
    for (size_t i = 0; i < SIZES; i++)
        findings_say(f, "%s%s", i ? ", " : "",
                     human_bytes(t, (uint64_t)member(top, i, "size_bytes")));
    findings_say(f, ") account for %s of the requests.", findings_percent(t, part));
    findings_advise(f, "Object pools for these sizes would relieve malloc.");
    return true;
}

static bool find_rounding(const struct findings_input *in, struct findings_item *f,
                          const char *path, const char *name)
{
    double part = number(in, path) / number(in, "requests.bytes");
    char percent[32];
    if (!(part >= ROUNDING_SHARE))
        return false;
    findings_say(f, "Internal fragmentation with %s is %s of the requested bytes.", name,
                 findings_percent(percent, part));
    findings_advise(
        f, "Look at the top sizes, and request sizes that are not just above a size class.");
    return true;
}

static bool find_rounding_glibc(const struct findings_input *in, struct findings_item *f)
{
    return find_rounding(in, f, "size_classes.glibc.internal_fragmentation_bytes",
                         "glibc's chunks");
}

static bool find_rounding_four(const struct findings_input *in, struct findings_item *f)
{
    return find_rounding(in, f, "size_classes.four_per_doubling.internal_fragmentation_bytes",
                         "four size classes per doubling");
}

static const char *requests_are(char text[64], uint64_t n)
{
    char count[32];
    snprintf(text, 64, n == 1 ? "%s request is" : "%s requests are", human_count(count, n));
    return text;
}

static bool find_above_class(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *site = first_site(in, "by_above_class", "above_class_lost_bytes",
                                               number(in, "requests.bytes"), ABOVE_SHARE);
    char frame[FRAME_BYTES], blocks[64], bytes[32];
    if (!site)
        return false;
    findings_say(
        f,
        "%s just above one of four size classes per doubling, as jemalloc has them, which costs %s of internal "
        "fragmentation there: %s.",
        requests_are(blocks, (uint64_t)json_value_number_at(site, "above_class_blocks")),
        human_bytes(bytes, (uint64_t)json_value_number_at(site, "above_class_lost_bytes")),
        frame_text(frame, own_frame(site)));
    findings_advise(f, "Request up to 16 bytes less.");
    return true;
}

static bool find_hardly_used(const struct findings_input *in, struct findings_item *f)
{
    double measured = number(in, "big_block_measured_bytes"),
           part = number(in, "big_block_unused_bytes") / measured;
    char bytes[32], percent[32];
    if (!(measured > 0 && measured >= BIG_SHARE * number(in, "requests.bytes") &&
          part >= UNUSED_SHARE))
        return false;
    findings_say(
        f,
        "Of %s in blocks of 16 KiB and more, %s was not used: pages that were never written to, or of calloc's "
        "blocks that held zeros only.",
        human_bytes(bytes, (uint64_t)measured), findings_percent(percent, part));
    findings_advise(
        f,
        "Request less: an allocator that clears or populates these blocks, or huge pages, would make "
        "them resident.");
    return true;
}

static bool find_hardly_used_of_a_site(const struct findings_input *in, struct findings_item *f)
{
    struct findings_item unused = {0};
    findings_say(f, "Of the bytes that were not used, ");
    return find_hardly_used(in, &unused) && find_part(in, f, "by_unused", "big_block_unused_bytes",
                                                      number(in, "big_block_unused_bytes"));
}

static bool find_small_requests(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *sizes = list(in, NULL, "sizes");
    double count = 0;
    char percent[32];
    for (size_t i = 0; i < json_value_length(sizes); i++)
        count += member(sizes, i, "max_bytes") <= SMALL_BYTES ? member(sizes, i, "count") : 0;
    double part = count / number(in, "requests.sized");
    if (!(part >= SMALL_SHARE))
        return false;
    findings_say(f, "%s of the requests are for 16 bytes or less, for which headers cost most.",
                 findings_percent(percent, part));
    findings_advise(f, "Embed such objects in the structures that point to them, or use arrays.");
    return true;
}

static bool find_never_freed(const struct findings_input *in, struct findings_item *f)
{
    double bytes = number(in, "never_freed.bytes"), part = bytes / number(in, "peak.bytes");
    char t[2][32], blocks[64];
    if (!(part >= NEVER_SHARE) || json_value_length(list(in, NULL, "processes")) > 1 ||
        json_value_bool(list(in, NULL, "partial")))
        return false;
    findings_say(f, "%s in %s are never freed, %s of the peak.", human_bytes(t[0], (uint64_t)bytes),
                 human_plural(blocks, (uint64_t)number(in, "never_freed.count"), "block", "blocks"),
                 findings_percent(t[1], part));
    findings_advise(
        f, "In a program that exits this is harmless and saves calls; in a server it is growth.");
    return true;
}

static bool find_zeroed(const struct findings_input *in, struct findings_item *f)
{
    double part = number(in, "calloc.zeroed_bytes") / number(in, "requests.bytes");
    char percent[32];
    if (!(part >= ZEROED_SHARE))
        return false;
    findings_say(f, "calloc allocates %s of the requested bytes.", findings_percent(percent, part));
    findings_advise(f, "If the blocks are overwritten at once, malloc avoids clearing them.");
    return true;
}

static bool find_lost_records(const struct findings_input *in, struct findings_item *f)
{
    char count[32];
    if (!(number(in, "lost_records") > 0))
        return false;
    findings_say(f, "%s records were lost while recording: counts are too low.",
                 human_count(count, (uint64_t)number(in, "lost_records")));
    findings_advise(
        f,
        "Record without --lossy, with less compression (-z lz4), or fewer processes (--follow).");
    return true;
}

static const struct json_value *processes_of(const struct findings_input *in)
{
    return list(in, NULL, "processes");
}

// Processes that have the member; *first is one of them.
static size_t count_with(const struct json_value *processes, const char *key,
                         const struct json_value **first)
{
    size_t n = 0;
    for (size_t i = json_value_length(processes); i-- > 0;) {
        const struct json_value *p = json_value_at(processes, i);
        if (!json_value_get(p, key))
            continue;
        *first = p;
        n++;
    }
    return n;
}

// "process 12 (/usr/bin/x)", and how many others.
static void say_process(struct findings_item *f, const struct json_value *p, size_t n)
{
    const char *exe = json_value_string(json_value_get(p, "exe"));
    char others[64];
    findings_say(f, "process %llu (%s)",
                 (unsigned long long)json_value_u64(json_value_get(p, "pid")), exe ? exe : "");
    if (n > 1)
        findings_say(f, " and %s", human_plural(others, n - 1, "other process", "other processes"));
}

static bool find_turned_off(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *first;
    size_t n = count_with(processes_of(in), "off_reason", &first);
    if (!n)
        return false;
    findings_say(f, "Recording turned itself off in ");
    say_process(f, first, n);
    findings_say(f, ": %s.", json_value_string(json_value_get(first, "off_reason")));
    findings_advise(
        f,
        "What comes after that is missing. Give the program more of what it lacked, and record again.");
    return true;
}

static bool find_unrecorded_processes(const struct findings_input *in, struct findings_item *f)
{
    uint64_t n = (uint64_t)number(in, "unrecorded.processes");
    const struct json_value *first = json_value_at(list(in, "unrecorded", "list"), 0);
    const char *name = json_value_string(json_value_get(first, "name"));
    const char *reason = json_value_string(json_value_get(first, "reason"));
    char processes[64];
    if (!(number(in, "unrecorded.processes") > 0))
        return false;
    findings_say(f, "%s not recorded", human_plural(processes, n, "process was", "processes were"));
    if (name && reason)
        findings_say(f, ", the first of them process %llu (%s): %s",
                     (unsigned long long)json_value_u64(json_value_get(first, "pid")), name,
                     reason);
    findings_say(f, ".");
    findings_advise(f, "The list has the reason of each; the guide to recording says what helps.");
    return true;
}

static bool find_own_malloc(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *first;
    size_t n = count_with(processes_of(in), "bypassed_by", &first);
    if (!n)
        return false;
    findings_say(f, "Calls of the malloc in %s were not recorded: those of ",
                 json_value_string(json_value_get(first, "bypassed_by")));
    say_process(f, first, n);
    findings_say(f, ".");
    findings_advise(
        f,
        "Link the program without its own malloc, or preload that as a library behind libheaptape.so.");
    return true;
}

static bool find_bypassing_objects(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *first;
    size_t n = count_with(processes_of(in), "deepbound", &first);
    const struct json_value *objects = n ? json_value_get(first, "deepbound") : NULL;
    if (!n)
        return false;
    findings_say(f,
                 "%s was opened with RTLD_DEEPBIND, and its calls of malloc were not recorded, in ",
                 json_value_string(json_value_at(objects, 0)));
    say_process(f, first, n);
    findings_say(f, ".");
    findings_advise(f, "Open it without RTLD_DEEPBIND for the recording.");
    return true;
}

// A block takes up to 16 bytes more of glibc's malloc than was requested.
static bool find_unexplained_memory(const struct findings_input *in, struct findings_item *f)
{
    enum { EXTRA_BYTES = 16 };
    const struct json_value *processes = processes_of(in), *most = NULL;
    double most_missing = 0, most_used = 0;
    char t[2][32];
    for (size_t i = 0; i < json_value_length(processes); i++) {
        double used = member(processes, i, "malloc_in_use_bytes");
        double missing = used - member(processes, i, "live_at_end_bytes") -
                         EXTRA_BYTES * member(processes, i, "live_at_end_blocks");
        if (!(missing > UNEXPLAINED_SHARE * used) || !(missing > most_missing))
            continue;
        most = json_value_at(processes, i);
        most_missing = missing;
        most_used = used;
    }
    if (!most)
        return false;
    findings_say(f,
                 "No recorded block explains %s of the %s that malloc had in use at the end, in ",
                 human_bytes(t[0], (uint64_t)most_missing), human_bytes(t[1], (uint64_t)most_used));
    say_process(f, most, 1);
    findings_say(f, ".");
    findings_advise(
        f,
        "They are those of the objects that call malloc past the library, or free blocks in thread caches.");
    return true;
}

static bool find_short_stacks(const struct findings_input *in, struct findings_item *f)
{
    const struct json_value *ends = list(in, "stack_coverage", "ends");
    double part =
        sum_of(ends, "allocated_bytes") / number(in, "stack_coverage.all.allocated_bytes");
    const char *object = json_value_string(json_value_get(json_value_at(ends, 0), "object"));
    char percent[32];
    if (!(part >= SHORT_STACKS_SHARE) || !object)
        return false;
    findings_say(
        f,
        "The stacks of %s of the allocated bytes end before the program's own code, most of them in %s.",
        findings_percent(percent, part), object);
    findings_advise(
        f,
        "Build that object with unwind tables or frame pointers, or have the JIT compiler keep them.");
    return true;
}

static bool find_ambiguous_order(const struct findings_input *in, struct findings_item *f)
{
    char count[32];
    if (!(number(in, "order.ambiguous") > AMBIGUOUS_SHARE * number(in, "events")))
        return false;
    findings_say(f, "The order of %s events is ambiguous.",
                 human_count(count, (uint64_t)number(in, "order.ambiguous")));
    findings_advise(
        f,
        "Record on a machine whose clock source is the TSC, or with fewer threads for each CPU.");
    return true;
}

static bool find_cut_off(const struct findings_input *in, struct findings_item *f)
{
    if (!json_value_bool(list(in, NULL, "cut_off")))
        return false;
    findings_say(f, "The file is cut off: the figures cover its beginning only.");
    return true;
}

// The names that the table gives to the rules of findings_results.c.
#define find_faster_allocator       findings_faster_allocator
#define find_fastest_uses_more      findings_fastest_uses_more
#define find_none_faster            findings_none_faster
#define find_leanest                findings_leanest
#define find_fragmentation          findings_fragmentation
#define find_below_live             findings_below_live
#define find_below_live_cleared     findings_below_live_cleared
#define find_below_live_agrees      findings_below_live_agrees
#define find_recorded_more          findings_recorded_more
#define find_recorded_more_unmapped findings_recorded_more_unmapped
#define find_kept                   findings_kept
#define find_calls_matter           findings_calls_matter
#define find_calls_hardly_matter    findings_calls_hardly_matter

static const struct {
    const char *name;
    bool act;
    findings_rule *rule;
} rules[FINDING_NAMES] = {
#define HT_X(name, act, when) {#name, act, find_##name},
    HT_FINDINGS(HT_X)
#undef HT_X
};

void findings_find(struct findings *f, const struct json_value *stat,
                   const struct json_value *const *results, size_t n)
{
    const struct findings_input in = {stat, results, n};
    f->n = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < FINDING_NAMES; i++) {
            struct findings_item item = {.name = rules[i].name, .act = rules[i].act};
            if (rules[i].act == (pass == 0) && rules[i].rule(&in, &item))
                f->items[f->n++] = item;
        }
    }
}

int findings_of_file(struct findings *f, const struct file_stat *s)
{
    struct json_value *stat = NULL;
    struct err e;
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    if (to)
        stat_json(&(struct json){.to = to}, s, NULL);
    int rc = to && fclose(to) == 0 ? json_value_parse(&stat, s->name, text, n, &e) : -ENOMEM;
    f->n = 0;
    if (rc == 0)
        findings_find(f, stat, NULL, 0);
    json_value_free(stat);
    free(text);
    return rc;
}

void findings_json(struct json *j, const struct findings *f)
{
    json_put_array(j, "findings");
    for (size_t i = 0; i < f->n; i++) {
        json_begin_object(j);
        json_put_string(j, "name", f->items[i].name);
        json_put_bool(j, "act", f->items[i].act);
        json_put_string(j, "text", f->items[i].text);
        json_put_string(j, "advice", f->items[i].advice[0] ? f->items[i].advice : NULL);
        json_end_object(j);
    }
    json_end_array(j);
}
