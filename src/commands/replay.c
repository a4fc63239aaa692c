#include "print/replay.h"
#include "commands/replay_options.h"
#include "replay/json.h"

#include <stdio.h>

extern const struct command cmd_replay;

static const struct option options[] = {
    {'a', "allocator", OPTION_LIST, "ALLOCATOR", NULL,
     "replay on this allocator: a name or a path, then tunables after commas [the allocator in LD_PRELOAD, or glibc]",
     offsetof(struct replay_options, allocators)},
    {0, "verify", OPTION_FLAG, NULL, NULL,
     "check every result of the allocator instead of measuring: overlapping, misaligned or short blocks, calloc "
     "without zeroes, lost or overwritten content",
     offsetof(struct replay_options, verify)},
    {0, "fragmentation", OPTION_FLAG, NULL, NULL,
     "add a run that finds the blocks that pin sparse pages, at the peak of live bytes and at the end",
     offsetof(struct replay_options, fragmentation)},
    REPLAY_OPTIONS("3"),
    {0},
};

static void print(struct replay_session *s, const struct replay_options *o)
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

static int run(const void *fields, int argc, char **argv)
{
    const struct replay_options *o = fields;
    (void)argc;
    if (o->allocators.n > 1)
        return usage_error(&cmd_replay, "one allocator at a time; 'heaptape compare' takes several");
    return replay_options_run(&cmd_replay, o, argv[0], print);
}

const struct command cmd_replay = {
    .name = "replay",
    .operands = "WORKLOAD|TRACE|-",
    .summary = "Replay a workload on an allocator and measure time and memory",
    .description =
        "Makes the calls of a recorded workload on an allocator and reports the time they took and the memory that "
        "the allocator used. Threads start, exit and depend on each other as recorded. The workload is decoded before "
        "the clock starts, and the memory of the player itself is not counted.\n\n"
        "ALLOCATOR is a name that 'heaptape allocators' lists, or the path of a shared library, followed by "
        "environment variables for it: jemalloc,MALLOC_CONF=narenas:2. The replay fails if malloc is not that "
        "library's.\n\n"
        "If the input is a trace, its process with the highest peak of live bytes is converted first.\n\n"
        "With --verify, the replay stops at the first violation of the malloc contract and reports its kind, the "
        "call, and the position in the workload. Nothing is measured.\n\n"
        "Calls that failed when they were recorded are skipped, and so are the program's own mappings.",
    .prints_text = true,
    .options = options,
    .options_bytes = sizeof(struct replay_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
