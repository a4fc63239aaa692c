// The machine of a replay, and the identity of an allocator's file.
#ifndef HEAPTAPE_REPLAY_MACHINE_H
#define HEAPTAPE_REPLAY_MACHINE_H

#include <stddef.h>
#include <stdint.h>

// Texts are "" and numbers 0 (load: negative) when unknown.
struct machine {
    char architecture[65], kernel[65]; // of uname(2)
    char cpu_model[128];
    uint64_t cores;        // CPUs that this process may run on
    uint64_t online_cpus;  // of the machine
    char cpus[128];        // those that this process may run on, as of cpuset(7): "0-3,8"
    int boost;             // may CPUs run above their base frequency? 1, 0; negative when unknown
    uint64_t memory_bytes; // of the machine
    uint64_t page_bytes;   // of the kernel
    double load;           // mean number of running processes in the last minute
    char governor[32];     // of the first CPU's frequency
    char transparent_hugepages[32]; // always, madvise or never
};

// Reads the state of the machine.
void machine_read(struct machine *m);

// The build ID of an ELF file of this machine's word size, as hexadecimal digits; "" when it has none.
void machine_build_id(const char *path, char *text, size_t size);

#endif
