// Figures of runs. The table of figures is in replay/player/figures_table.h.
#pragma once

#include "replay/plan/plan.h"
#include "replay/player/figures_table.h"
#include "replay/player/results.h"

#include <stdbool.h>
#include <stddef.h>

enum figure_unit { FIGURE_COUNT, FIGURE_BYTES, FIGURE_NS, FIGURE_RATIO, FIGURE_SHARE };
enum figure_origin { FIGURE_PLAYER, FIGURE_DERIVED, FIGURE_PLAN };
enum figure_summary { FIGURE_MEDIAN, FIGURE_TYPICAL };
enum figure_better { FIGURE_LESS, FIGURE_MORE, FIGURE_NEITHER };
enum figure_group {
    FIGURE_WORKLOAD,
    FIGURE_TIME,
    FIGURE_MEMORY,
    FIGURE_COUNTERS,
    FIGURE_DEPENDENCIES,
    FIGURE_DECODER,
    FIGURE_GROUPS,
};

// Places where a figure is shown in addition to the JSON summary. The values are bits.
enum figure_shown {
    FIGURE_IN_RUN = 1,
    FIGURE_IN_TEXT = 2,
    FIGURE_IN_COLUMN = 4,
    FIGURE_IN_DIFF = 8,
    FIGURE_IN_PAGE = 16,
};

struct figure_info {
    const char *name;
    enum figure_unit unit;
    enum figure_origin origin;
    enum figure_summary summary;
    enum figure_group group;
    unsigned shown;
    const char *ratio; // NULL if the figure has no ratio
    enum figure_better better;
    const char *label;
};

enum {
#define HT_X(name, unit, origin, summary, group, shown, ratio, better, label, meaning)             \
    FIGURE_##name,
    HT_FIGURES(HT_X)
#undef HT_X
        FIGURES
};

extern const struct figure_info figure_infos[FIGURES];

// Names of the JSON objects that hold the figures of each group. NULL if the figures are members of
// the result itself.
extern const char *const figure_objects[FIGURE_GROUPS];

// Writes the figure's path in a JSON result, such as "wall_ns" or "counters.cycles".
enum { FIGURE_PATH_BYTES = 64 };
char *figure_path(const struct figure_info *info, char path[FIGURE_PATH_BYTES]);

// Names of enum figure_unit and enum figure_better. FIGURE_NEITHER has no name.
extern const char *const figure_unit_names[], *const figure_better_names[];

// Figures of one run, or the summary of all runs on an allocator. A figure is NAN if unknown.
union figures {
    struct {
#define HT_X(name, unit, origin, summary, group, shown, ratio, better, label, meaning) double name;
        HT_FIGURES(HT_X)
#undef HT_X
    };
    double values[FIGURES];
};

// Sets the figures that the player measured, and sets all other figures to NAN.
void figures_set_measured(union figures *f, const struct results_figures *measured);

// Sets the figures of origin PLAN and DERIVED. Requires the player's figures, mean_rss_bytes and
// mean_live_bytes. Figures that are meaningless for this run become NAN.
void figures_derive(union figures *f, const struct plan_facts *facts, bool is_paced,
                    bool is_idle_measured);

// Summarizes n runs (1 to MEASURE_MAX_RUNS). `typical` is the index of the typical run.
void figures_summarize(union figures *f, const union figures *const runs[], size_t n,
                       size_t typical);
