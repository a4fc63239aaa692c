// Writers of speedscope's file format (file-format-spec.ts of github.com/jlfwong/speedscope) and of
// the Firefox Profiler's processed profile, version 48 (src/types/profile.js of
// github.com/firefox-devtools/profiler).
#include "report/profile.h"

static int collect_stacks(struct profile_stacks *t, const struct by_site *b,
                          struct symbols *symbols, enum profile_weight weight)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < b->n_sites; i++) {
        uint64_t w = profile_weigh(&b->sites[i], weight);
        rc = w ? profile_stacks_add(t, i, symbols, w) : 0;
    }
    return rc;
}

static const char *const weight_names[] = {
    [PROFILE_PEAK] = "bytes live at the peak",
    [PROFILE_LIVE] = "bytes live at the end",
    [PROFILE_BYTES] = "allocated bytes",
    [PROFILE_CALLS] = "allocations",
    [PROFILE_GROWTH] = "steady growth",
    [PROFILE_SPAN] = "allocated in the span and live at its end",
};

// Writes the frames of a stack, the outermost frame first.
static void put_stack(struct json *j, const struct profile_stacks *t, uint32_t stack)
{
    uint32_t frames[4096], n = 0;
    for (; stack != PROFILE_NO_STACK && n < sizeof frames / sizeof *frames;
         stack = t->stacks[stack].prefix)
        frames[n++] = t->stacks[stack].frame;
    json_begin_array(j);
    while (n > 0)
        json_u64(j, frames[--n]);
    json_end_array(j);
}

static void put_speedscope(struct json *j, const struct profile_stacks *t, const char *name,
                           enum profile_weight weight)
{
    json_begin_object(j);
    json_put_string(j, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_put_string(j, "exporter", "heaptape");
    json_put_string(j, "name", name);
    json_put_object(j, "shared");
    json_put_array(j, "frames");
    for (size_t i = 0; i < t->n_frames; i++) {
        const struct symbol *f = &t->frames[i];
        json_begin_object(j);
        json_put_string(j, "name", f->function);
        if (f->file[0]) {
            json_put_string(j, "file", f->file);
            json_put_u64(j, "line", (uint64_t)f->line);
        }
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
    json_put_array(j, "profiles");
    json_begin_object(j);
    json_put_string(j, "type", "sampled");
    json_put_string(j, "name", weight_names[weight]);
    json_put_string(j, "unit", weight == PROFILE_CALLS ? "none" : "bytes");
    json_put_u64(j, "startValue", 0);
    json_put_u64(j, "endValue", t->total);
    json_put_array(j, "samples");
    for (size_t i = 0; i < t->n_samples; i++)
        put_stack(j, t, t->samples[i].stack);
    json_end_array(j);
    json_put_array(j, "weights");
    for (size_t i = 0; i < t->n_samples; i++)
        json_u64(j, t->samples[i].weight);
    json_end_array(j);
    json_end_object(j);
    json_end_array(j);
    json_end_object(j);
}

// Writes a value n times.
static void put_column(struct json *j, const char *key, size_t n, void (*put)(struct json *j))
{
    json_put_array(j, key);
    for (size_t i = 0; i < n; i++)
        put(j);
    json_end_array(j);
}

static void put_minus_one(struct json *j)
{
    json_i64(j, -1);
}

static void put_false(struct json *j)
{
    json_bool(j, false);
}

// Writes n numbers in steps of `step`, beginning with `first`.
static void put_numbers(struct json *j, const char *key, size_t n, uint64_t first, uint64_t step)
{
    json_put_array(j, key);
    for (size_t i = 0; i < n; i++)
        json_u64(j, first + i * step);
    json_end_array(j);
}

static void put_lines(struct json *j, const char *key, const struct profile_stacks *t)
{
    json_put_array(j, key);
    for (size_t i = 0; i < t->n_frames; i++) {
        if (t->frames[i].line > 0)
            json_u64(j, (uint64_t)t->frames[i].line);
        else
            json_null(j);
    }
    json_end_array(j);
}

// Writes the functions. Each frame has a separate function. Function i has the strings 2 i (name)
// and 2 i + 1 (file).
static void put_functions(struct json *j, const struct profile_stacks *t)
{
    size_t n = t->n_frames;
    json_put_object(j, "frameTable");
    put_column(j, "address", n, put_minus_one);
    put_numbers(j, "inlineDepth", n, 0, 0);
    put_column(j, "category", n, json_null);
    put_column(j, "subcategory", n, json_null);
    put_numbers(j, "func", n, 0, 1);
    put_column(j, "nativeSymbol", n, json_null);
    put_column(j, "innerWindowID", n, json_null);
    put_column(j, "implementation", n, json_null);
    put_lines(j, "line", t);
    put_column(j, "column", n, json_null);
    json_put_u64(j, "length", n);
    json_end_object(j);
    json_put_object(j, "funcTable");
    put_numbers(j, "name", n, 0, 2);
    put_column(j, "isJS", n, put_false);
    put_column(j, "relevantForJS", n, put_false);
    put_column(j, "resource", n, put_minus_one);
    put_numbers(j, "fileName", n, 1, 2);
    put_lines(j, "lineNumber", t);
    put_column(j, "columnNumber", n, json_null);
    json_put_u64(j, "length", n);
    json_end_object(j);
    json_put_array(j, "stringArray");
    for (size_t i = 0; i < n; i++) {
        json_string(j, t->frames[i].function);
        json_string(j, t->frames[i].file);
    }
    json_end_array(j);
}

static void put_stacks(struct json *j, const struct profile_stacks *t)
{
    json_put_object(j, "stackTable");
    json_put_array(j, "frame");
    for (size_t i = 0; i < t->n_stacks; i++)
        json_u64(j, t->stacks[i].frame);
    json_end_array(j);
    put_numbers(j, "category", t->n_stacks, 0, 0);
    put_numbers(j, "subcategory", t->n_stacks, 0, 0);
    json_put_array(j, "prefix");
    for (size_t i = 0; i < t->n_stacks; i++) {
        if (t->stacks[i].prefix == PROFILE_NO_STACK)
            json_null(j);
        else
            json_u64(j, t->stacks[i].prefix);
    }
    json_end_array(j);
    json_put_u64(j, "length", t->n_stacks);
    json_end_object(j);
}

// Writes a sample for each site. The format requires increasing times, so the samples are one
// millisecond apart.
static void put_samples(struct json *j, const struct profile_stacks *t, enum profile_weight weight)
{
    json_put_object(j, "samples");
    json_put_array(j, "stack");
    for (size_t i = 0; i < t->n_samples; i++)
        json_u64(j, t->samples[i].stack);
    json_end_array(j);
    put_numbers(j, "time", t->n_samples, 0, 1);
    json_put_array(j, "weight");
    for (size_t i = 0; i < t->n_samples; i++)
        json_u64(j, t->samples[i].weight);
    json_end_array(j);
    json_put_string(j, "weightType", weight == PROFILE_CALLS ? "samples" : "bytes");
    json_put_u64(j, "length", t->n_samples);
    json_end_object(j);
}

static void put_empty_table(struct json *j, const char *key, const char *const columns[])
{
    json_put_object(j, key);
    for (; *columns; columns++) {
        json_put_array(j, *columns);
        json_end_array(j);
    }
    json_put_u64(j, "length", 0);
    json_end_object(j);
}

static void put_meta(struct json *j, const char *name)
{
    json_put_object(j, "meta");
    json_put_u64(j, "interval", 1);
    json_put_u64(j, "startTime", 0);
    json_put_u64(j, "processType", 0);
    json_put_string(j, "product", name);
    json_put_u64(j, "stackwalk", 1);
    json_put_u64(j, "version", 29);
    json_put_u64(j, "preprocessedProfileVersion", 48);
    json_put_array(j, "categories");
    json_begin_object(j);
    json_put_string(j, "name", "Other");
    json_put_string(j, "color", "grey");
    json_put_array(j, "subcategories");
    json_string(j, "Other");
    json_end_array(j);
    json_end_object(j);
    json_end_array(j);
    json_put_array(j, "markerSchema");
    json_end_array(j);
    json_end_object(j);
}

static void put_firefox(struct json *j, const struct profile_stacks *t, const char *name,
                        enum profile_weight weight)
{
    static const char *const markers[] = {"data",  "name",     "startTime", "endTime",
                                          "phase", "category", NULL};
    static const char *const resources[] = {"lib", "name", "host", "type", NULL};
    static const char *const natives[] = {"libIndex", "address", "name", "functionSize", NULL};
    json_begin_object(j);
    put_meta(j, name);
    json_put_array(j, "libs");
    json_end_array(j);
    json_put_array(j, "threads");
    json_begin_object(j);
    json_put_string(j, "name", weight_names[weight]);
    json_put_string(j, "processType", "default");
    json_put_bool(j, "isMainThread", true);
    json_put_u64(j, "processStartupTime", 0);
    json_put_u64(j, "registerTime", 0);
    json_put_string(j, "pid", "0");
    json_put_u64(j, "tid", 0);
    json_put_array(j, "pausedRanges");
    json_end_array(j);
    put_samples(j, t, weight);
    put_stacks(j, t);
    put_functions(j, t);
    put_empty_table(j, "markers", markers);
    put_empty_table(j, "resourceTable", resources);
    put_empty_table(j, "nativeSymbols", natives);
    json_end_object(j);
    json_end_array(j);
    json_end_object(j);
}

int profile_json(struct json *j, enum profile_json_format format, const struct profile_json_of *of)
{
    struct profile_stacks t = {0};
    int rc = collect_stacks(&t, of->totals, of->symbols, of->weight);
    if (rc == 0)
        (format == PROFILE_SPEEDSCOPE ? put_speedscope : put_firefox)(j, &t, of->name, of->weight);
    profile_stacks_release(&t);
    return rc;
}
