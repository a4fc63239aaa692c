// Figures of `stat` as lines of text.
#ifndef HEAPTAPE_TEXT_FIGURES_H
#define HEAPTAPE_TEXT_FIGURES_H

#include "report/stat_figures.h"

// Prints a line with the label and the value of a figure. Prints nothing if the figure has no label
// or if its value is unknown.
void figures_print(const union stat_figures *f, unsigned figure);

#endif
