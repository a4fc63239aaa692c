// The machine that a replay runs on, and the build ID of a file.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Unknown strings are "". Unknown numbers are 0, or negative if 0 is a valid value.
struct machine {
    char architecture[65], kernel[65]; // as reported by uname(2)
    char cpu_model[128];
    uint64_t cores; // CPUs that this process may use
    uint64_t online_cpus;
    char cpus[128]; // list of the CPUs that this process may use: "0-3,8"
    int boost;      // 1 if CPUs may exceed their base frequency; negative if unknown
    uint64_t memory_bytes;
    uint64_t page_bytes;
    double load;                    // load average over the last minute; negative if unknown
    char governor[32];              // frequency governor of CPU 0
    char transparent_hugepages[32]; // always, madvise or never
};

void machine_read(struct machine *m);

enum { MACHINE_BUILD_ID_BYTES = 129 }; // size of a build ID as text

// Writes the build ID of an ELF file in hexadecimal, or "" if the file has no build ID. The file
// must have this machine's word size.
void machine_build_id(const char *path, char *text, size_t size);
