#include "report/text/figures.h"

#include "cli/human.h"

#include <math.h>
#include <stdio.h>

static double percent_of(uint64_t n, uint64_t of)
{
    return of ? 100.0 * (double)n / (double)of : 0;
}

static void print_remark(const union stat_figures *f, unsigned figure)
{
    if (figure == STAT_FIGURE_usable_bytes)
        printf("  %5.1f %% over requested",
               100.0 * ((double)f->usable_bytes / (double)f->usable_requested_bytes - 1));
    else if (figure == STAT_FIGURE_big_block_bytes)
        printf("  %5.1f %% with their use measured",
               percent_of(f->big_block_measured_bytes, f->big_block_bytes));
    else if (figure == STAT_FIGURE_big_block_unused_bytes)
        printf("  %5.1f %% of these",
               percent_of(f->big_block_unused_bytes, f->big_block_measured_bytes));
    else if (figure == STAT_FIGURE_calls_min_cpu_ns)
        printf("  to %s", human_time(f->calls_max_cpu_ns));
}

const char *figures_text(enum figure_unit unit, double v)
{
    char *text = human_buffer();
    if (isnan(v))
        return "-";
    if (unit == FIGURE_COUNT)
        return human_number((uint64_t)v);
    if (unit == FIGURE_BYTES)
        return human_size((uint64_t)v);
    if (unit == FIGURE_NS)
        return human_time(v);
    snprintf(text, HUMAN_BYTES, unit == FIGURE_SHARE ? "%.1f %%" : "%.2f",
             unit == FIGURE_SHARE ? 100 * v : v);
    return text;
}

void figures_print(const union stat_figures *f, unsigned figure)
{
    const struct stat_figures_info *info = &stat_figures_infos[figure];
    double value = stat_figures_value(f, figure);
    if (!info->text || isnan(value) ||
        (info->when != STAT_FIGURE_ALWAYS && !(stat_figures_value(f, info->when) > 0)))
        return;
    printf("%-22s %15s", info->text, figures_text(info->unit, value));
    print_remark(f, figure);
    putchar('\n');
}
