// Text of `doctor`, which fits on one screen.
#ifndef HEAPTAPE_TEXT_DOCTOR_H
#define HEAPTAPE_TEXT_DOCTOR_H

#include "report/doctor.h"

// Prints at most 25 lines of 80 columns. Returns 0 or -ENOMEM.
int doctor_print(const struct doctor *d);

#endif
