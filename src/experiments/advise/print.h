// Text of the result of advise.
#ifndef HEAPTAPE_PRINT_ADVISE_H
#define HEAPTAPE_PRINT_ADVISE_H

#include "experiments/advise/advise.h"

void advise_print(const struct advise *a, enum advise_figure rank);

#endif
