// Finds allocators and settings that improve a workload's figures, by replaying the workload within
// a time budget.
//
// First, each setting in a table is replayed once. This phase uses half of the budget. Each group
// of settings has a share of this half; unused time passes to the next groups. Then, for each
// figure, the best settings are repeated in turn with the current setting. Only the repetitions are
// compared.
#pragma once

#include "base/json.h"
#include "replay/session.h"

enum {
    ADVISE_MIN_ROUNDS = 6, // with fewer repetitions there is no verdict
    ADVISE_MAX_ROUNDS = 9,
};

// Groups in the order of the trials. Each group is more expensive to deploy than the previous
// group.
enum advise_group {
    ADVISE_ALLOCATOR,
    ADVISE_TRIM,
    ADVISE_DECAY,
    ADVISE_ARENAS,
    ADVISE_HUGE_PAGES,
    ADVISE_GROUPS
};

// Conditions under which a setting has an effect that can be measured. The values are bits.
enum advise_needs {
    ADVISE_NEEDS_THREADS = 1, // several threads
    ADVISE_NEEDS_PACE = 2, // a replay at the recorded pace, because memory is returned with a delay
    ADVISE_NEEDS_HUGE = 4, // a kernel with transparent huge pages on request (madvise)
    ADVISE_NEEDS_HUGE_ALWAYS = 8, // a kernel with transparent huge pages for all programs (always)
};

struct advise_setting {
    enum advise_group group;
    const char *allocator;   // a name in allocator_infos
    const char *environment; // VARIABLE=VALUE,… as for allocator_parse, or ""
    // The program calls malloc_trim once every trim_step * advise_trim_interval calls. 0 for never.
    unsigned trim_step;
    unsigned needs;
    // The program or its parent calls prctl(PR_SET_THP_DISABLE), which children inherit.
    int huge_pages_off;
};

// settings.c: the table of settings. The last row has no allocator.
extern const struct advise_setting advise_settings[];

// Returns the name of a group, such as "allocator" or "trim".
const char *advise_group_name(enum advise_group group);

// The figures that are compared, in the order of --rank. Lower values are better. X(enumerator,
// figure of replay/player/figures_table.h, key of its ratio in JSON, head of its column, name).
// tools/generate derives a schema from the rows.
// clang-format off
#define ADVISE_FIGURE_TABLE(X) \
    X(CPU, cpu_ns, "cpu_ratio", "CPU time", "CPU time") \
    X(PEAK, peak_rss_bytes, "rss_ratio", "peak RSS", "peak RSS") \
    X(MEAN, mean_rss_bytes, "mean_rss_ratio", "mean RSS", "mean RSS") \
    X(END, end_rss_bytes, "end_rss_ratio", "at end", "RSS at the end") \
    X(IDLE, rss_after_idle_bytes, "idle_rss_ratio", "after idle", "RSS after idle")
// clang-format on

enum advise_figure {
#define HT_X(number, figure, ratio, head, name) ADVISE_##number,
    ADVISE_FIGURE_TABLE(HT_X)
#undef HT_X
        ADVISE_FIGURES
};

struct advise_figure_info {
    size_t figure; // FIGURE_* of replay/figures.h
    const char *ratio, *head, *name;
};
extern const struct advise_figure_info advise_figures[ADVISE_FIGURES];

struct advise_row {
    const struct advise_setting *setting; // NULL for the current setting
    size_t result; // index of the row's result in the session, if the row was tried
    bool tried;
    uint64_t first_ns;         // duration of the first run, including the start of the player
    struct err missing_reason; // why the row was not tried
};

struct advise {
    struct replay_session *session; // borrowed; result 0 is the current setting
    bool has_run_program;
    struct advise_row *rows; // the current setting, followed by the settings of the table
    size_t n_rows;
    uint64_t trim_interval; // number of calls between two TRIM ops of the plan, or 0 for no TRIM
    uint64_t budget_ns, spent_ns;
    unsigned rounds; // number of repetitions after the first run
};

// Returns the latest time, relative to the start, at which the first replay of a setting in the
// group may begin. For a group's first setting, this is the end of the first phase. For its other
// settings, it is the end of the group's share.
uint64_t advise_turn_ns(uint64_t budget_ns, enum advise_group group, bool is_first);

// For the setting that trims most often, returns the number of calls between two trims. The number
// is 1, 2 or 5 times a power of 10. Returns 0 if the workload is too short.
uint64_t advise_trim_interval(uint64_t events);

// Runs the replays that the budget allows. The budget starts at `start_ns` of CLOCK_MONOTONIC. The
// session must have read its workload, with settings.trim_every set to `trim_interval`, and must
// have exactly one allocator, the current allocator. If a setting's replay fails, sets
// missing_reason in the setting's row. Returns 0, or a negative errno if the current setting cannot
// be replayed. The caller must release *a before the session, even after an error.
int advise_run(struct advise *a, uint64_t start_ns, struct err *e);
void advise_release(struct advise *a);

// Returns the median of a tried row's repetitions. If the row was not repeated, returns the value
// of its first run. Returns NAN if unknown.
double advise_value(const struct advise *a, const struct advise_row *r, enum advise_figure figure);

// Returns the ratio to the current setting. If the row was repeated, the ratio has an interval.
struct measure_ratio advise_ratio(const struct advise *a, const struct advise_row *r,
                                  enum advise_figure figure);

// Returns -1 if the row is below the current setting by more than noise, 1 if it is above, and 0
// otherwise. A difference exceeds noise only if three conditions hold: the values of the two rows
// do not overlap, the medians differ by more than the range of either row, and the medians differ
// by at least 1 % of the current median. With six repetitions, equal settings appear different in
// one case in a thousand.
int advise_verdict(const struct advise *a, const struct advise_row *r, enum advise_figure figure);
int advise_verdict_of(const double *values, size_t n, const double *present, size_t n_present);

// Among the rows that are below the current setting by more than noise, returns the row with the
// lowest value of a figure. If `cheap` is true, excludes rows that use more CPU time by more than
// noise. Returns NULL if no row remains.
const struct advise_row *advise_best(const struct advise *a, enum advise_figure figure, bool cheap);

// Returns the row with the lowest value of a figure among the undecided rows. A row is undecided if
// it was not repeated or if its difference from the current setting may be noise. The value must be
// at least 1 % below the value of `best`, or of the current setting if `best` is NULL. Returns NULL
// if there is no such row. `cheap` is as in advise_best.
const struct advise_row *advise_undecided(const struct advise *a, enum advise_figure figure,
                                          bool cheap, const struct advise_row *best);

// Runs the real program ADVISE_MIN_ROUNDS times with the current setting, and equally often with
// each setting that advise_best returns for a figure. Skips settings without an environment.
// Returns 0, or an error of replay_real_run.
int advise_run_program(struct advise *a, char *const argv[], struct err *e);

// Returns true if the program was run with the setting.
bool advise_has_program(const struct advise *a, const struct advise_row *r);

// Compares the runs of the program in the same way as advise_verdict. Returns 0 if the program was
// not run.
int advise_program_verdict(const struct advise *a, const struct advise_row *r,
                           enum replay_real_figure figure);

// Returns false if the program was run with the setting and its figure was not below the current
// value by more than noise. Only CPU time and peak RSS are measured in the program.
bool advise_is_confirmed(const struct advise *a, const struct advise_row *r,
                         enum advise_figure figure);

// Returns true if the row was repeated, so that it can be compared.
bool advise_is_repeated(const struct advise *a, const struct advise_row *r);

// Writes the figures for which advise_best returns the row, for example "least CPU time, less peak
// RSS". Writes "less" if advise_undecided returns another row that may be better by this figure.
// Writes "" if the row is not the best for any figure. Omits figures that the runs of the program
// do not confirm.
enum { ADVISE_HEADLINE_BYTES = 128 };
char *advise_headline(const struct advise *a, const struct advise_row *r, bool cheap,
                      char text[ADVISE_HEADLINE_BYTES]);

// Returns the share of the unused memory that a setting returns to the kernel. Unused memory is the
// memory outside live blocks that is still resident at the end of a replay with the current
// setting. Returns NAN if there is no unused memory.
double advise_returned_share(const struct advise *a, const struct advise_row *r);

// Sorts the rows that were tried by `figure`, lowest first. The current setting is always the first
// row. `order` must have space for n_rows rows. Returns the number of rows.
size_t advise_rank(const struct advise *a, enum advise_figure figure,
                   const struct advise_row **order);

// Writes the name of a row, such as "jemalloc,MALLOC_CONF=narenas:1" or "glibc, malloc_trim(0)
// every 200 000 calls".
enum { ADVISE_NAME_BYTES = 160, ADVISE_DEPLOY_BYTES = 4600 };
char *advise_name(const struct advise *a, const struct advise_row *r, char text[ADVISE_NAME_BYTES]);

// Writes the environment of a row, "LD_PRELOAD=… MALLOC_CONF=…", or "" if the row needs none.
// Returns NULL if the program must call a function instead; advise_deploy describes the call.
char *advise_environment(const struct advise *a, const struct advise_row *r,
                         char text[ADVISE_DEPLOY_BYTES]);

// Writes instructions for deploying the setting: a sentence without a full stop, or the
// environment.
char *advise_deploy(const struct advise *a, const struct advise_row *r,
                    char text[ADVISE_DEPLOY_BYTES]);

// Prints the result as text.
void advise_print(const struct advise *a, enum advise_figure rank);

// Writes the document of docs/reference/json/advise.schema.json.
void advise_json(struct json *j, const struct advise *a, enum advise_figure rank);
