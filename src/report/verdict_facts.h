// Facts about a recorded process, for the verdict.
#ifndef HEAPTAPE_REPORT_VERDICT_FACTS_H
#define HEAPTAPE_REPORT_VERDICT_FACTS_H

#include "analysis/file_stat.h"
#include "analysis/memory/rss_history.h"
#include "report/verdict.h"

// Fills the facts from a file that was counted whole (FILE_STAT_ALL or FILE_STAT_REPORT) or is an
// aggregate. `history` describes the process s->of_usage. It is NULL if the resident memory is not
// known. Strings of *s are borrowed.
void verdict_facts_of_file(struct verdict_facts *f, const struct file_stat *s,
                           const struct rss_history *history);

// Reads the history of the process with the highest peak of live bytes. Returns 0, or a negative
// errno with *e set; h->rss.maps is 0 if the trace has no page maps. In either case, the caller
// must call rss_history_release.
int verdict_facts_read_history(struct rss_history *h, const struct file_stat *s, const char *path,
                               const struct convert_watch *watch, struct err *e);

#endif
