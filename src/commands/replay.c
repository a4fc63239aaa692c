#include "report/text/replay.h"
#include "commands/replay_options.h"
#include "replay/json.h"

#include <stdio.h>

#define AT(member) offsetof(struct replay_options, member)

static const struct option options[] = {
    {'a', "allocator", OPTION_LIST, "ALLOCATOR", NULL,
     "replay on this allocator: a name or path, then tunables [the allocator in LD_PRELOAD, or "
     "glibc]",
     AT(allocators)},
    {0, "verify", OPTION_FLAG, NULL, NULL,
     "check every result of the allocator instead of measuring", AT(verify)},
    {0, "fragmentation", OPTION_FLAG, NULL, NULL,
     "add a run that finds the blocks that pin sparse pages", AT(fragmentation)},
    REPLAY_OPTIONS("3"),
    {0},
};

// --verify fills all blocks and measures nothing.
static const struct command_mode modes[] = {
    {.option = "verify"},
    {.accepts = "fragmentation|internal-fragmentation|touch|stats-every"},
};

static void print_results(struct replay_session *s, const struct replay_options *o)
{
    if (o->json) {
        struct json j = {.to = stdout};
        replay_json(&j, s);
        return;
    }
    replay_print_workload(s);
    if (s->settings.verify)
        replay_print_verified(&s->results[0]);
    else
        replay_print_text(s, &s->results[0]);
}

static int run_replay(const void *fields, char **argv)
{
    const struct replay_options *o = fields;
    if (o->allocators.n > 1)
        return usage_error(&cmd_replay,
                           "only one allocator is allowed; use 'heaptape compare' for several");
    return replay_options_run(&cmd_replay, o, argv[0], print_results);
}

const struct command cmd_replay = {
    .name = "replay",
    .operands = "WORKLOAD|TRACE|-",
    .summary = "Replay a workload on an allocator and measure time and memory",
    .examples =
        {
            {"Replay on jemalloc with two arenas",
             "heaptape replay -a jemalloc,MALLOC_CONF=narenas:2 program.htw"},
            {"Find the blocks that pin pages",
             "heaptape replay --fragmentation -a glibc program.htw"},
            {"Check an allocator of your own, 20 times",
             "heaptape replay --verify --runs 20 -a ./libmine.so program.htw"},
        },
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct replay_options),
    .modes = {modes},
    .min_operands = 1,
    .max_operands = 1,
    .run = run_replay,
};
