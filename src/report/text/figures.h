// Figures as text.
#pragma once

#include "report/stat_figures.h"

// Returns a figure with its unit, or "-" for NAN. The result is in one of the buffers of
// cli/human.h.
const char *figures_text(enum figure_unit unit, double v);

// Prints the line of `stat` with the label and the value of a figure. Prints nothing if the figure
// has no label or if its value is unknown.
void figures_print(const union stat_figures *f, unsigned figure);
