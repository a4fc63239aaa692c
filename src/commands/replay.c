#include "commands/replay_options.h"
#include "commands/replay_print.h"

#include <stdio.h>

extern const struct command cmd_replay;

static const struct option options[] = {
    {'a', "allocator", OPTION_LIST, "ALLOCATOR", NULL,
     "replay on this allocator: a name or path, and tunables after commas; glibc unless given",
     offsetof(struct replay_options, allocators)},
    {0, "verify", OPTION_FLAG, NULL, NULL,
     "check what the allocator does instead of measuring it: fill each block with a pattern and look for overlap, "
     "wrong "
     "alignment, too little room, calloc without zeroes, and content that was lost or overwritten",
     offsetof(struct replay_options, verify)},
    {0, "holders", OPTION_FLAG, NULL, NULL,
     "one more run, to find out which blocks keep pages from being given back at the peak of live bytes and at the end",
     offsetof(struct replay_options, holders)},
    REPLAY_OPTIONS,
    {0},
};

static void print_json(const struct replay_session *s)
{
    struct json j = {.to = stdout, .pretty = false};
    json_begin_object(&j);
    json_put_u64(&j, "schema_version", 1);
    json_put_string(&j, "workload", s->workload);
    replay_print_machine(&j, &s->machine);
    if (s->verify)
        replay_print_verified_members(&j, &s->figures[0]);
    else
        replay_print_members(&j, s, &s->figures[0]);
    json_end_object(&j);
}

static void print(const struct replay_session *s, const struct replay_options *o)
{
    if (o->json) {
        print_json(s);
        return;
    }
    replay_print_workload(s);
    if (s->verify)
        replay_print_verified(&s->figures[0]);
    else
        replay_print_text(s, &s->figures[0]);
}

static int run(const void *fields, int argc, char **argv)
{
    const struct replay_options *o = fields;
    (void)argc;
    if (o->allocators.n > 1)
        return usage_error(&cmd_replay, "one allocator at a time; 'heaptape compare' takes several");
    return replay_run_all(&cmd_replay, o, argv[0], print);
}

const struct command cmd_replay = {
    .name = "replay",
    .operands = "WORKLOAD|TRACE|-",
    .summary = "Make an allocator do a workload again, and measure it",
    .description =
        "Makes the calls of a recorded workload on an allocator, in threads that are born, wait for each other and end "
        "as "
        "recorded, and tells how long that took and how much memory the allocator used for it. The workload is decoded "
        "before the clock starts, and the memory of the player itself does not count.\n\n"
        "ALLOCATOR is a name that 'heaptape allocators' lists or the path of a shared library, and environment "
        "variables "
        "for it after commas: jemalloc,MALLOC_CONF=narenas:2. It fails when malloc turns out not to be that "
        "library's.\n\n"
        "Of a trace, the process with most events is converted first.\n\n"
        "With --verify an allocator that does what none may do ends it with one line that names the kind of violation, "
        "the call, and the place in the workload. Nothing is measured then.\n\n"
        "Calls that failed when they were recorded, and mappings that the program made itself, are not played.",
    .options = options,
    .options_bytes = sizeof(struct replay_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
