// Names of code that a process compiles while it runs, as it reports them for perf: lines "START SIZE NAME" in
// /tmp/perf-PID.map, in hexadecimal (tools/perf/Documentation/jit-interface.txt of Linux), and records in a jit-PID.dump that it
// has mapped (jitdump-specification.txt there).
#ifndef HEAPTAPE_RECORD_CODE_NAMES_H
#define HEAPTAPE_RECORD_CODE_NAMES_H

#include "trace/names.h"

#include <stdbool.h>
#include <sys/types.h>

// A file that grows.
struct code_names_file {
    int fd;        // once it is there: it may be gone when the process ends
    uint64_t at;   // read so far
    bool ended;    // nothing more is read
    struct buf in; // of a map, the beginning of a line whose end is not there yet
};

// Of one process. code_names_init makes one that has seen nothing yet.
struct code_names {
    struct code_names_file map, dump;
    bool makes_code;     // it has executable memory that is of no file
    char *dump_path;     // as the process sees it; NULL: none is mapped
    uint64_t dump_shift; // of addresses in its lists of lines
    struct buf lines;    // of the source, of the function that comes next
    uint64_t bytes;      // read in all, also when a file began anew
    struct names names;  // read and not yet written
    uint64_t bad_lines;  // of the map, and records of the dump, that are not as they should be
    uint64_t checked_ns; // when it was last due
    bool too_long;       // there is more than CODE_NAMES_BYTES
};

enum {
    CODE_NAMES_BYTES = 64 << 20, // read of a process; node's are some MiB
    CODE_NAMES_PASS = 1 << 20,   // read at once while the process runs
};

void code_names_init(struct code_names *c);
void code_names_release(struct code_names *c);

// What was read is forgotten, and read again.
void code_names_restart(struct code_names *c);

// Whose file it is: the process as /proc names it (0: not known), as it sees itself, and since when it can have written.
struct code_names_process {
    pid_t visible_pid;
    uint32_t own_pid;
    uint64_t since_ns; // CLOCK_REALTIME
};

// Looks for the mapping of a dump among `n` words of whole records, of which some are HT_MODULE.
void code_names_look(struct code_names *c, const uint64_t *words, uint32_t n);

// Is it time to read what a running process has added? If so, it counts as read now.
bool code_names_is_due(struct code_names *c, uint64_t now_ns);

// Reads what has been added to the files; once the process has ended, all of it. A file of another user, an older one, or one that is
// no regular file is left alone. Memory that is not to be had ends the reading.
void code_names_read(struct code_names *c, const struct code_names_process *p, bool all);

#endif
