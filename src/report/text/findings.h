// Findings as text.
#ifndef HEAPTAPE_TEXT_FINDINGS_H
#define HEAPTAPE_TEXT_FINDINGS_H

#include "report/findings.h"

// Prints a paragraph for each finding. An asterisk marks those where a change may pay.
void findings_print(const struct findings *f);

#endif
