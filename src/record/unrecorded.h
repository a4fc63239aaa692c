// Processes that the program has started and that are not recorded, as /proc shows them: by whose children they are, and by
// the session in their environment. One that lives for a shorter time than it takes to look again is not seen.
#ifndef HEAPTAPE_RECORD_UNRECORDED_H
#define HEAPTAPE_RECORD_UNRECORDED_H

#include "record/drain.h"
#include "record/record.h"

struct unrecorded {
    struct unrecorded_process *items;
    size_t n, capacity;
    unsigned long long forks; // of the machine, at the last look
    uint64_t next_ns;         // not before
    unsigned look;            // their number
    unsigned due;             // looks, until something forks again
};

// Forks of the whole machine since it was started. 0: unknown.
unsigned long long unrecorded_forks(void);

// Looks at /proc, if something has forked since the last time and that is long enough ago. `program`: whose children are
// looked for; `dir`: of the session.
void unrecorded_look(struct unrecorded *u, pid_t program, const char *dir);

// Forgets the processes that have a spool.
void unrecorded_match(struct unrecorded *u, const struct drain *c);

// Fills in the list of the result: these, and those that say so themselves in the session.
void unrecorded_report(const struct unrecorded *u, struct spool_session *session, struct record_result *result);

void unrecorded_release(struct unrecorded *u);

#endif
