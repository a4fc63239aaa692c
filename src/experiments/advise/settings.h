// The table of settings that advise tries.
#ifndef HEAPTAPE_ADVISE_SETTINGS_H
#define HEAPTAPE_ADVISE_SETTINGS_H

// Groups in the order of the trials. Each group is more expensive to deploy than the previous
// group.
enum advise_group {
    ADVISE_ALLOCATOR,
    ADVISE_TRIM,
    ADVISE_DECAY,
    ADVISE_ARENAS,
    ADVISE_HUGE_PAGES,
    ADVISE_GROUPS
};

// Conditions under which a setting has an effect that can be measured. The values are bits.
enum advise_needs {
    ADVISE_NEEDS_THREADS = 1, // several threads
    ADVISE_NEEDS_PACE = 2, // a replay at the recorded pace, because memory is returned with a delay
    ADVISE_NEEDS_HUGE = 4, // a kernel with transparent huge pages on request (madvise)
    ADVISE_NEEDS_HUGE_ALWAYS = 8, // a kernel with transparent huge pages for all programs (always)
};

struct advise_setting {
    enum advise_group group;
    const char *allocator;   // a name in allocator_infos
    const char *environment; // VARIABLE=VALUE,… as for allocator_parse, or ""
    // The program calls malloc_trim once every trim_step * advise_trim_interval calls. 0 for never.
    unsigned trim_step;
    unsigned needs;
    // The program or its parent calls prctl(PR_SET_THP_DISABLE), which children inherit.
    int huge_pages_off;
};

// The last row has no allocator.
extern const struct advise_setting advise_settings[];

// Returns the name of a group, such as "allocator" or "trim".
const char *advise_group_name(enum advise_group group);

#endif
