// Options and functions shared by the commands that replay workloads.
#pragma once

#include "analysis/measure.h"
#include "cli/command.h"
#include "replay/session.h"

#include <limits.h>
#include <sched.h>

struct replay_options {
    struct option_list allocators;
    uint64_t runs;
    enum results_touch touch;
    enum replay_threads threads;
    uint64_t stats_every, trim_every;
    bool internal_fragmentation;
    double speed; // multiple of the recorded pace; 0 for full speed
    struct replay_idle {
        uint64_t ns;
        bool given;
    } idle;
    struct replay_cpus {
        cpu_set_t set;
        const char *text; // as given, or NULL if there is no restriction
    } cpus;
    uint64_t timeout_ns;
    uint64_t memory_bytes;
    bool latency, cache;
    bool verify;               // replay only
    bool fragmentation;        // replay only
    struct option_list sweeps; // compare only
    const char *page;          // compare only
    bool force;                // compare only
    bool real, add_recorded;   // compare only
    bool keep_going;           // compare only
    int placement;             // compare only: index of the choice auto, always or never
    // Compare only: maximum number of events for which placements are searched.
    uint64_t placement_events;
    char *const *program; // compare only: operands after the workload
    bool json;
};

#define REPLAY_MAX_IDLE_NS    (86400 * CLOCK_NS_PER_S)
#define REPLAY_MAX_TIMEOUT_NS (86400 * CLOCK_NS_PER_S)

// Rows for the option table of a command whose options struct begins with struct replay_options.
// clang-format off
#define REPLAY_OPTIONS(default_runs)                                                                                   \
    {'r', "runs", OPTION_NUMBER, "N", default_runs, "replay N times on each allocator and report medians",                    \
     offsetof(struct replay_options, runs), .min = 1, .max = MEASURE_MAX_RUNS},                                                                           \
    {0, "touch", OPTION_CHOICE, "page|none|all", "page",                                                               \
     "write to each block: its first byte and each of its pages, nothing, or every byte",                           \
     offsetof(struct replay_options, touch)},                                                                          \
    {0, "threads", OPTION_CHOICE, "auto|real|coupled|one", "auto",                                                      \
     "choose how the recorded threads run", \
     offsetof(struct replay_options, threads)},                                                                        \
    {0, "speed", OPTION_PARSED, "max|recorded|xN", "max",                                                              \
     "replay at full speed, at the recorded pace, or N times as fast as recorded", offsetof(struct replay_options, speed), .parse = replay_parse_speed},                \
    {0, "idle", OPTION_PARSED, "SECONDS", NULL,                                                                      \
     "measure memory again SECONDS after everything was freed [10 with --speed recorded or xN]",             \
     offsetof(struct replay_options, idle), .max = REPLAY_MAX_IDLE_NS, .parse = replay_parse_idle},                                                                 \
    {0, "cpus", OPTION_PARSED, "LIST", NULL, "run on these CPUs only: 2,3 or 0-7",                                    \
     offsetof(struct replay_options, cpus), .parse = replay_parse_cpus},                                               \
    {0, "timeout", OPTION_SECONDS, "SECONDS", "60",                                                                     \
     "stop when no thread has made progress for SECONDS; 0: never",               \
     offsetof(struct replay_options, timeout_ns), .max = REPLAY_MAX_TIMEOUT_NS},                             \
    {0, "internal-fragmentation", OPTION_FLAG, NULL, NULL,                                                                               \
     "add a run that compares requested sizes with malloc_usable_size", offsetof(struct replay_options, internal_fragmentation)},       \
    {0, "stats-every", OPTION_NUMBER, "N", NULL,                                                                       \
     "add a run that reads the allocator's own statistics every N calls",                             \
     offsetof(struct replay_options, stats_every)},                                                                    \
    {0, "trim-every", OPTION_NUMBER, "N", NULL,                                                                        \
     "ask the allocator to return memory to the kernel every N calls",                            \
     offsetof(struct replay_options, trim_every)},                                                                     \
    {0, "latency", OPTION_FLAG, NULL, "on", "omit the run that times each call",                               \
     offsetof(struct replay_options, latency)},                                                                     \
    {0, "memory", OPTION_SIZE, "SIZE", NULL,                                                                           \
     "stream a workload whose decoded form needs more than SIZE [a quarter of the machine's memory]",                           \
     offsetof(struct replay_options, memory_bytes)},                                                                   \
    {0, "cache", OPTION_FLAG, NULL, "on",                                                                              \
     "neither read nor write ~/.cache/heaptape",               \
     offsetof(struct replay_options, cache)},                                                                          \
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object", offsetof(struct replay_options, json)}
// clang-format on

// For OPTION_PARSED: parses "max", "recorded" or "xN" into a double.
int replay_parse_speed(const char *text, void *field);

// For OPTION_PARSED: parses up to REPLAY_MAX_IDLE_NS into a struct replay_idle.
int replay_parse_idle(const char *text, void *field);

// For OPTION_PARSED: parses numbers and ranges of CPUs into a struct replay_cpus, which borrows
// `text`.
int replay_parse_cpus(const char *text, void *field);

// Replays the workload at `path` according to the options, and calls `print` with the finished
// session. Returns EXIT_DONE, or EXIT_USAGE if options contradict each other. Dies on other errors.
int replay_options_run(const struct command *c, const struct replay_options *o, const char *path,
                       void (*print)(struct replay_session *s, const struct replay_options *o));

// Returns EXIT_DONE. If a sweep is not VARIABLE=VALUE, prints a usage error and returns EXIT_USAGE.
int replay_check_sweeps(const struct command *c, const struct option_list *sweeps);

// Calls `add` with `spec` and each combination of the sweeps' values. If `add` returns a value
// other than 0, stops and returns this value. Otherwise, returns 0.
int replay_each_swept(const struct option_list *sweeps, const char *spec,
                      int (*add)(void *context, const char *spec, struct err *e), void *context,
                      struct err *e);

// Returns the command line `given` or, if `given` is empty, the recorded command line. The caller
// must free the array.
char **replay_choose_program(const struct replay_session *s, char *const given[]);

// Prints a warning if the allocator does not read one of its tunables. If `previous` is not NULL
// and needs the same warning, prints nothing.
void replay_note_unread(const struct allocator *a, const struct allocator *previous);

// Stores the path of a program or library of heaptape. Dies if the file is missing.
void replay_find_own(const char *name, char path[PATH_MAX]);

// Stores the paths of heaptape-replay and libheaptape-null.so. Installs a handler that prints the
// sender of a SIGTERM. Dies if a file is missing.
void replay_prepare(char player[PATH_MAX], char null_library[PATH_MAX]);

// Replays the workload at `path` on the allocators. Fills in the paths and `quiet` of *how. The
// caller must release *s. Dies on errors.
void replay_workload(struct replay_session *s, struct replay_settings *how,
                     const struct option_list *allocators, const struct option_list *sweeps,
                     const char *path);
