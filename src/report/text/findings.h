// Findings as text.
#ifndef HEAPTAPE_PRINT_FINDINGS_H
#define HEAPTAPE_PRINT_FINDINGS_H

#include "report/findings.h"

// A paragraph each, those where a change may pay marked with an asterisk; nothing if there are none.
void findings_print(const struct findings *f);

#endif
