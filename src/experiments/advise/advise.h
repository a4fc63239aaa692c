// Which allocator and which settings would help a workload: replays on those of a table, within a budget of time.
//
// Each setting is replayed once first, in the order of the table, for half of the budget, of which each group of settings has
// its part: what one does not use is for the next ones. The best ones by each figure
// are then repeated in turn with the present setting, and only these repetitions are compared.
#ifndef HEAPTAPE_ADVISE_ADVISE_H
#define HEAPTAPE_ADVISE_ADVISE_H

#include "base/json.h"
#include "experiments/advise/settings.h"
#include "replay/session.h"

enum {
    ADVISE_MIN_ROUNDS = 6, // without which nothing is said of a difference
    ADVISE_MAX_ROUNDS = 9,
};

// The figures that are compared, in the order of --rank; less is better. Rows of: the figure of replay/player/figures_table.h, the
// key of its ratio in JSON, the head of its column, its name. tools/generate makes a schema of them.
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
    size_t figure; // FIGURE_* of figures.h
    const char *ratio, *head, *name;
};
extern const struct advise_figure_info advise_figures[ADVISE_FIGURES];

struct advise_row {
    const struct advise_setting *setting; // NULL: the present setting
    size_t result;                        // its number in the session, if it was tried
    bool tried;
    uint64_t first_ns;         // what its first run took, the start of the player included
    struct err missing_reason; // why it was not tried
};

struct advise {
    struct replay_session *session; // borrowed; its first result is the present setting
    struct advise_row *rows;        // the present setting, then those of the table
    size_t n_rows;
    uint64_t trim_interval; // calls between two TRIM ops of the plan; 0: there are none
    uint64_t budget_ns, spent_ns;
    unsigned rounds; // repetitions after the first run of each
};

// Until when after the start a setting of the group may be tried first: each group has its share of half of the budget, and
// its first setting may use what is left of all.
uint64_t advise_turn_ns(uint64_t budget_ns, enum advise_group group, bool is_first);

// Calls between two trims of the setting that trims most often, for a workload of so many: 1, 2 or 5 times a power of
// 10; 0 where it is too short for it.
uint64_t advise_trim_interval(uint64_t events);

// Does what the budget allows, from `start_ns` of CLOCK_MONOTONIC on. The session has read its workload, with
// settings.trim_every of `trim_interval`, and has one allocator, the present one. A setting whose replay fails is a row with
// a reason. 0, or a negative errno when the present setting cannot be replayed. *a is to be released in any case, before the
// session.
int advise_run(struct advise *a, uint64_t start_ns, struct err *e);
void advise_release(struct advise *a);

// The value of a row that was tried: the median of the repetitions, or of the first run if it was not repeated. NAN: not
// known.
double advise_value(const struct advise *a, const struct advise_row *r, enum advise_figure figure);

// That row against the present setting. Without repetitions the ratio alone.
struct measure_ratio advise_ratio(const struct advise *a, const struct advise_row *r,
                                  enum advise_figure figure);

// Is the difference more than noise? Every repetition of one is above every one of the other, and the medians are further
// apart than the values of either are, and than a hundredth of the present: of six repetitions, equal ones look so in one of a thousand cases. −1: less than
// at present, 1: more, 0: cannot be said.
int advise_verdict(const struct advise *a, const struct advise_row *r, enum advise_figure figure);
int advise_verdict_of(const double *values, size_t n, const double *present, size_t n_present);

// The row with the lowest value of a figure among those that are better than at present by more than noise, and
// if `cheap`, do not take more CPU time by more than noise; NULL: none.
const struct advise_row *advise_best(const struct advise *a, enum advise_figure figure, bool cheap);

// Share of the bytes that are resident at the end at present, and are not in live blocks, that the setting returns; NAN if
// there are none.
double advise_returned_share(const struct advise *a, const struct advise_row *r);

// The rows that were tried, the lowest value of `figure` first and the present setting at the head. `order` has room for
// n_rows; how many there are.
size_t advise_rank(const struct advise *a, enum advise_figure figure,
                   const struct advise_row **order);

// "jemalloc,MALLOC_CONF=narenas:1", "glibc, malloc_trim(0) every 200 000 calls".
enum { ADVISE_NAME_BYTES = 160, ADVISE_DEPLOY_BYTES = 4600 };
char *advise_name(const struct advise *a, const struct advise_row *r, char text[ADVISE_NAME_BYTES]);

// What to set, if that is all: "LD_PRELOAD=… MALLOC_CONF=…" or "" where nothing is to be set. NULL: the program has to
// call something, or whoever starts it; advise_deploy says what.
char *advise_environment(const struct advise *a, const struct advise_row *r,
                         char text[ADVISE_DEPLOY_BYTES]);

// What to do to get the setting, as a sentence without a full stop, or the environment.
char *advise_deploy(const struct advise *a, const struct advise_row *r,
                    char text[ADVISE_DEPLOY_BYTES]);

// The document that docs/reference/json/advise.schema.json describes.
void advise_json(struct json *j, const struct advise *a, enum advise_figure rank);

#endif
