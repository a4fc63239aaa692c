// Names of JIT-compiled code that a process writes for perf. /tmp/perf-PID.map contains lines
// "START SIZE NAME" in hexadecimal (tools/perf/Documentation/jit-interface.txt of Linux). A
// jit-PID.dump that the process has mapped contains records (jitdump-specification.txt in the same
// directory).
#pragma once

#include "trace/names.h"

#include <stdbool.h>
#include <sys/types.h>

// A growing file.
struct code_names_file {
    int fd; // opened early, because the file may be removed when the process ends
    uint64_t at;
    bool ended;
    struct buf in; // start of an incomplete line
};

// Names of a process's code. Initialize with code_names_init.
struct code_names {
    struct code_names_file map, dump;
    bool makes_code;     // the process has executable memory that is not backed by a file
    char *dump_path;     // as the process sees it; NULL if no dump is mapped
    uint64_t dump_shift; // added to the addresses in the line tables of the dump
    struct buf lines;    // line table of the next function
    uint64_t bytes;      // number of bytes read so far
    struct names names;  // names read but not written yet
    uint64_t bad_lines;  // invalid lines and records
    uint64_t checked_ns;
    bool too_long;
};

enum {
    CODE_NAMES_BYTES = 64 << 20, // maximum bytes read for a process; node writes a few MiB
    CODE_NAMES_PASS = 1 << 20,   // maximum bytes read in a call while the process runs
};

void code_names_init(struct code_names *c);
void code_names_release(struct code_names *c);

// Discards all names and reads the files from the start.
void code_names_restart(struct code_names *c);

// The process that writes the files. visible_pid is its pid in /proc, or 0 if unknown. own_pid is
// its pid in its own namespace. Files older than both the process and since_ns are ignored.
struct code_names_process {
    pid_t visible_pid;
    uint32_t own_pid;
    uint64_t since_ns; // CLOCK_REALTIME
};

// Searches the words for HT_MODULE records that name a dump or a script function.
void code_names_find(struct code_names *c, const uint64_t *words, uint32_t n);

// Returns true if the files should be read again, and restarts the interval.
bool code_names_is_due(struct code_names *c, uint64_t now_ns);

// Reads new data in the files. If `all` is set, reads everything; set it for a process that has
// ended. Ignores other users' files, older files and special files. Stops if out of memory.
void code_names_read(struct code_names *c, const struct code_names_process *p, bool all);
