// Facts about a recorded process, for the verdict.
#ifndef HEAPTAPE_REPORT_VERDICT_FACTS_H
#define HEAPTAPE_REPORT_VERDICT_FACTS_H

#include "analysis/file_stat.h"
#include "report/verdict.h"

// Fills in the facts from a file, which must have been counted completely (FILE_STAT_ALL or
// FILE_STAT_REPORT) or be an aggregate. Strings of *s are borrowed.
void verdict_facts_of_file(struct verdict_facts *f, const struct file_stat *s);

#endif
