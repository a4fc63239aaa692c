// Options that replay and compare share.
#ifndef HEAPTAPE_COMMANDS_REPLAY_OPTIONS_H
#define HEAPTAPE_COMMANDS_REPLAY_OPTIONS_H

#include "cli/command.h"
#include "commands/replay_session.h"

struct replay_options {
    struct option_list allocators;
    uint64_t runs;
    const char *touch;
    const char *threads;
    uint64_t stats_every, trim_every;
    bool internal_fragmentation;
    const char *speed;
    uint64_t idle_seconds;
    uint64_t memory_bytes;
    bool no_latency;
    bool verify;               // replay only
    bool fragmentation;        // the same
    struct option_list sweeps; // compare only
    const char *page;          // the same
    bool force;                // the same
    bool json;
};

// Rows of an option table whose struct begins with struct replay_options.
// clang-format off
#define REPLAY_OPTIONS                                                                                                 \
    {'r', "runs", OPTION_NUMBER, "N", "3", "replay N times on each allocator and report medians",                    \
     offsetof(struct replay_options, runs)},                                                                           \
    {0, "touch", OPTION_CHOICE, "page|none|all", "page",                                                               \
     "write to each block: its first byte and each of its pages, nothing, or every byte",                           \
     offsetof(struct replay_options, touch)},                                                                          \
    {0, "threads", OPTION_CHOICE, "real|one", "real",                                                                  \
     "run one thread for each recorded thread, or make all calls in one thread in recorded order",                               \
     offsetof(struct replay_options, threads)},                                                                        \
    {0, "speed", OPTION_STRING, "max|recorded|xN", "max",                                                              \
     "replay at full speed, at the recorded pace, or N times as fast as recorded", offsetof(struct replay_options, speed)},                \
    {0, "idle", OPTION_NUMBER, "SECONDS", NULL,                                                                      \
     "measure memory again SECONDS after everything was freed [10 with --speed recorded or xN]",             \
     offsetof(struct replay_options, idle_seconds)},                                                                 \
    {0, "internal-fragmentation", OPTION_FLAG, NULL, NULL,                                                                               \
     "add a run that compares requested sizes with malloc_usable_size", offsetof(struct replay_options, internal_fragmentation)},       \
    {0, "stats-every", OPTION_NUMBER, "N", NULL,                                                                       \
     "add a run that reads the allocator's own statistics every N calls and at marks",                             \
     offsetof(struct replay_options, stats_every)},                                                                    \
    {0, "trim-every", OPTION_NUMBER, "N", NULL,                                                                        \
     "ask the allocator to return memory to the kernel every N calls, by malloc_trim or its equivalent",                            \
     offsetof(struct replay_options, trim_every)},                                                                     \
    {0, "no-latency", OPTION_FLAG, NULL, NULL, "omit the run that times each call",                               \
     offsetof(struct replay_options, no_latency)},                                                                     \
    {0, "memory", OPTION_SIZE, "SIZE", NULL,                                                                           \
     "stream a workload whose decoded form needs more than SIZE [a quarter of the machine's memory]",                           \
     offsetof(struct replay_options, memory_bytes)},                                                                   \
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object", offsetof(struct replay_options, json)}
// clang-format on

// Makes all runs that the options ask for, on the workload at `path`, and has the results printed. Dies when that fails.
// Options that make no sense are a usage error: then it returns EXIT_USAGE, else EXIT_DONE.
int replay_run_all(const struct command *c, const struct replay_options *o, const char *path,
                   void (*print)(const struct replay_session *s, const struct replay_options *o));

#endif
