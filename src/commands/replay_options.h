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
    bool slop;
    const char *speed;
    uint64_t settle_seconds;
    uint64_t memory_bytes;
    bool no_latency;
    bool verify;               // replay only
    bool holders;              // the same
    struct option_list sweeps; // compare only
    const char *page;          // the same
    bool force;                // the same
    bool json;
};

// Rows of an option table whose struct begins with struct replay_options.
// clang-format off
#define REPLAY_OPTIONS                                                                                                 \
    {'r', "runs", OPTION_NUMBER, "N", "3", "replay N times on each allocator; figures are medians",                    \
     offsetof(struct replay_options, runs)},                                                                           \
    {0, "touch", OPTION_CHOICE, "page|none|all", "page",                                                               \
     "write to each block: its first byte and once in each page, not at all, or everywhere",                           \
     offsetof(struct replay_options, touch)},                                                                          \
    {0, "threads", OPTION_CHOICE, "real|one", "real",                                                                  \
     "a thread for each recorded one, or all calls in one thread in the recorded order",                               \
     offsetof(struct replay_options, threads)},                                                                        \
    {0, "speed", OPTION_STRING, "max|recorded|xN", "max",                                                              \
     "pace: as fast as it goes, as recorded, or N times that", offsetof(struct replay_options, speed)},                \
    {0, "settle", OPTION_NUMBER, "SECONDS", NULL,                                                                      \
     "look at memory again that long after everything has been freed; 10 unless given if there is a pace",             \
     offsetof(struct replay_options, settle_seconds)},                                                                 \
    {0, "slop", OPTION_FLAG, NULL, NULL,                                                                               \
     "one more run, to compare sizes asked for with malloc_usable_size", offsetof(struct replay_options, slop)},       \
    {0, "stats-every", OPTION_NUMBER, "N", NULL,                                                                       \
     "one more run, to look at the allocator's own statistics every N calls and at marks",                             \
     offsetof(struct replay_options, stats_every)},                                                                    \
    {0, "trim-every", OPTION_NUMBER, "N", NULL,                                                                        \
     "tell the allocator to give memory back every N calls, by malloc_trim or what it has",                            \
     offsetof(struct replay_options, trim_every)},                                                                     \
    {0, "no-latency", OPTION_FLAG, NULL, NULL, "leave out the run that times each call",                               \
     offsetof(struct replay_options, no_latency)},                                                                     \
    {0, "memory", OPTION_SIZE, "SIZE", NULL,                                                                           \
     "memory that the decoded workload may take, a quarter of the machine's unless given; a bigger one is streamed",                           \
     offsetof(struct replay_options, memory_bytes)},                                                                   \
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object", offsetof(struct replay_options, json)}
// clang-format on

// Makes all runs that the options ask for, on the workload at `path`, and has the results printed. Dies when that fails.
// Options that make no sense are a usage error: then it returns EXIT_USAGE, else EXIT_DONE.
int replay_run_all(const struct command *c, const struct replay_options *o, const char *path,
                   void (*print)(const struct replay_session *s, const struct replay_options *o));

#endif
