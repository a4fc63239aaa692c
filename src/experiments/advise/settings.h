// The table of settings that advise tries.
#ifndef HEAPTAPE_ADVISE_SETTINGS_H
#define HEAPTAPE_ADVISE_SETTINGS_H

// In the order in which they are tried: a group costs a user more to deploy than the one before it.
enum advise_group {
    ADVISE_ALLOCATOR,
    ADVISE_TRIM,
    ADVISE_DECAY,
    ADVISE_ARENAS,
    ADVISE_HUGE_PAGES,
    ADVISE_GROUPS
};

// What a setting needs to have an effect, or to be measured; bits.
enum advise_needs {
    ADVISE_NEEDS_THREADS = 1, // several threads
    ADVISE_NEEDS_PACE = 2,    // the recorded pace, since memory is returned after a time
    ADVISE_NEEDS_HUGE = 4,    // a kernel that has transparent huge pages for those who ask: madvise
    ADVISE_NEEDS_HUGE_ALWAYS = 8, // one that has them for everybody: always
};

struct advise_setting {
    enum advise_group group;
    const char *allocator;   // of allocator_infos
    const char *environment; // VARIABLE=VALUE,… as allocator_parse has it; "": none
    unsigned
        trim_step; // the program calls malloc_trim after so many times advise_trim_interval calls; 0: never
    unsigned needs;
    // The program, or who starts it, calls prctl(PR_SET_THP_DISABLE), which children inherit.
    int huge_pages_off;
};

// Ended by a row without an allocator.
extern const struct advise_setting advise_settings[];

// "allocator", "trim", …
const char *advise_group_name(enum advise_group group);

#endif
