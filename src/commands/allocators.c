#include "base/json.h"
#include "commands/replay_options.h"
#include "replay/run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct allocators_options {
    bool json;
};

static const struct option options[] = {
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object",
     offsetof(struct allocators_options, json)},
    {0},
};

// An allocator of the table, as found on this machine.
struct found {
    const struct allocator_info *info;
    bool available;
    char version[128];
    char *library;
    struct err why; // set if the allocator is not available
};

static void probe_allocator(struct found *f, const struct replay_run_settings *s)
{
    struct allocator a;
    if (allocator_parse(&a, f->info->name, &f->why) < 0)
        return;
    f->available = replay_probe(&a, s, f->version, &f->library, &f->why) == 0;
    allocator_release(&a);
}

static void print_object(struct json *j, const struct found *f)
{
    json_begin_object(j);
    json_put_string(j, "name", f->info->name);
    json_put_bool(j, "available", f->available);
    json_put_string(j, "library", f->library);
    json_put_string(j, "version", f->version[0] ? f->version : NULL);
    json_put_string(j, "tunables", f->info->tunables);
    if (!f->available)
        json_put_string(j, "reason", f->why.text);
    json_end_object(j);
}

static void print_line(const struct found *f)
{
    if (f->available)
        printf("%-10s %-10s %s\n", f->info->name, f->version[0] ? cli_text(f->version) : "-",
               cli_text(f->library));
    else
        printf("%-10s %-10s %s\n", f->info->name, "-", cli_text(f->why.text));
}

static int run_allocators(const void *o, char **argv)
{
    const struct allocators_options *opts = o;
    struct json j = {.to = stdout, .pretty = true};
    char player[PATH_MAX];
    struct replay_run_settings settings = {.player = player,
                                           .timeout_ns = REPLAY_TIMEOUT_SECONDS * 1000000000ull};
    (void)argv;
    replay_find_own("heaptape-replay", player);
    if (opts->json) {
        json_begin_document(&j);
        json_put_array(&j, "allocators");
    }
    for (const struct allocator_info *i = allocator_infos; i->name; i++) {
        struct found f = {.info = i};
        probe_allocator(&f, &settings);
        if (opts->json)
            print_object(&j, &f);
        else
            print_line(&f);
        free(f.library);
    }
    if (opts->json) {
        json_end_array(&j);
        json_end_object(&j);
    }
    return EXIT_DONE;
}

const struct command cmd_allocators = {
    .name = "allocators",
    .operands = "",
    .summary = "List the allocators that can be replayed on this machine",
    .examples =
        {
            {"List the allocators of this machine", "heaptape allocators"},
            {"Print the paths of their libraries",
             "heaptape allocators --json | jq -r '.allocators[].library'"},
        },
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct allocators_options),
    .min_operands = 0,
    .max_operands = 0,
    .run = run_allocators,
};
