// Text of the result of advise.
#ifndef HEAPTAPE_ADVISE_PRINT_H
#define HEAPTAPE_ADVISE_PRINT_H

#include "experiments/advise/advise.h"

void advise_print(const struct advise *a, enum advise_figure rank);

#endif
