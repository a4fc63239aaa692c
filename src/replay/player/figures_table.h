// The table of figures. A figure is a number that describes one run of a workload on an allocator.
//
// To add a figure, add one row here and one line that measures it: in the player (origin PLAYER),
// in the plan's facts (PLAN), or in replay/figures.c (DERIVED). The table generates the struct that
// the player fills, the summary over all runs, the JSON output and its schema, the text output of
// replay and compare, `report --diff` and the HTML report.
#pragma once

// X(name, unit, origin, summary, group, shown, ratio, better, label, meaning)
//
//   name     member of struct results_figures and union figures, and JSON key
//   unit     COUNT, BYTES, NS, RATIO (of two figures) or SHARE (from 0 to 1)
//   origin   PLAYER: measured by the player. DERIVED: computed from other figures of the run. PLAN:
//            known before the run
//   summary  how the runs of an allocator are summarized: MEDIAN, or TYPICAL for the value of the
//            run with the median wall time
//   group    line in replay's text output; COUNTERS and DECODER are objects in JSON
//   shown    places that show the figure in addition to JSON: RUN (in each run), TEXT (of replay),
//            COLUMN (of compare), DIFF, PAGE
//   ratio    JSON key for the ratio to the first allocator, which compare and the report also show
//   better   LESS, MORE or NEITHER
//   label    label in text output; it follows a COUNT and precedes any other value
//   meaning  one sentence without a full stop, for the schema and the reference
// clang-format off
#define HT_FIGURES(X) \
    X(events, COUNT, PLAN, TYPICAL, WORKLOAD, RUN, NULL, NEITHER, "calls", \
      "calls that the replay makes") \
    X(skipped, COUNT, PLAN, TYPICAL, WORKLOAD, 0, NULL, NEITHER, "ops skipped", \
      "recorded ops that are not replayed: failed calls and the program's own mappings") \
    X(preexisting, COUNT, PLAN, TYPICAL, WORKLOAD, 0, NULL, NEITHER, "preexisting blocks", \
      "blocks allocated before the clock starts: inherited by a fork, live at the start of a slice, or allocated without a record") \
    X(preexisting_bytes, BYTES, PLAN, TYPICAL, WORKLOAD, 0, NULL, NEITHER, "preexisting", \
      "requested bytes of these blocks") \
    X(threads, COUNT, PLAN, TYPICAL, WORKLOAD, 0, NULL, NEITHER, "threads", \
      "threads of the replay that make calls") \
    X(peak_live_bytes, BYTES, PLAN, TYPICAL, WORKLOAD, 0, NULL, NEITHER, "peak live", \
      "highest sum of requested bytes of live blocks, in the recorded order") \
    X(live_at_end_bytes, BYTES, PLAN, TYPICAL, WORKLOAD, 0, NULL, NEITHER, "live at the end", \
      "requested bytes of the blocks that are live after the last call") \
    X(thread_switches, COUNT, PLAN, TYPICAL, WORKLOAD, 0, NULL, NEITHER, "switches between the recorded threads", \
      "with --threads one: switches from the calls of one recorded thread to the calls of another") \
    X(cache_switches, COUNT, PLAYER, TYPICAL, WORKLOAD, 0, NULL, NEITHER, "thread caches swapped", \
      "with --threads one: changes of the allocator's thread cache") \
    X(refused_calls, COUNT, PLAYER, TYPICAL, WORKLOAD, RUN | DIFF, NULL, LESS, "calls refused", \
      "aligned allocations that the allocator refused because of their arguments, such as an alignment that is not a power of two; they are skipped") \
    X(wall_ns, NS, PLAYER, MEDIAN, TIME, RUN | TEXT | COLUMN | DIFF | PAGE, "wall_ratio", LESS, "wall time", \
      "time from before the first call until the last thread has exited") \
    X(cpu_ns, NS, DERIVED, MEDIAN, TIME, RUN | TEXT | DIFF, NULL, LESS, "CPU time", \
      "user and system time of all threads") \
    X(user_ns, NS, PLAYER, MEDIAN, TIME, RUN, NULL, LESS, "user time", \
      "CPU time in user mode of all threads") \
    X(system_ns, NS, PLAYER, MEDIAN, TIME, RUN, NULL, LESS, "system time", \
      "CPU time in the kernel of all threads") \
    X(touch_ns, NS, PLAYER, MEDIAN, TIME, RUN, NULL, LESS, "first use of big blocks", \
      "time the player spends writing to blocks of 16 KiB or more on behalf of the program, including page faults; summed over the threads") \
    X(load_cpu_ns, NS, PLAYER, MEDIAN, TIME, RUN, NULL, LESS, "CPU time of the load", \
      "CPU time of the player's process until main: the dynamic loader, with the allocator's libraries and constructors") \
    X(ns_per_event, NS, DERIVED, MEDIAN, TIME, TEXT | COLUMN | DIFF | PAGE, NULL, LESS, "time/event", \
      "wall time divided by the number of calls") \
    X(events_per_second, COUNT, DERIVED, MEDIAN, TIME, TEXT, NULL, MORE, "calls/s", \
      "number of calls divided by the wall time") \
    X(overhead_ns_per_event, NS, DERIVED, MEDIAN, TIME, TEXT | DIFF | PAGE, NULL, NEITHER, "overhead/event", \
      "replay overhead: wall time per call of the same replay on an allocator that does nothing") \
    X(max_lag_ns, NS, PLAYER, TYPICAL, TIME, TEXT, NULL, LESS, "max lag", \
      "with --speed: longest delay of a thread") \
    X(baseline_rss_bytes, BYTES, PLAYER, MEDIAN, MEMORY, RUN, NULL, NEITHER, "baseline RSS", \
      "RSS after the allocator was loaded and before the first call, or 0 if the program had mapped the allocator's library; included in all RSS figures") \
    X(start_rss_bytes, BYTES, PLAYER, MEDIAN, MEMORY, RUN | TEXT, NULL, LESS, "RSS at the start", \
      "private resident memory, less the player's own, when the preexisting blocks have been allocated and the clock has not started") \
    X(library_bytes, BYTES, PLAYER, MEDIAN, MEMORY, RUN, NULL, LESS, "allocator's files", \
      "resident pages of the files of the allocator's library and of the libraries that it needs, after the last call; libraries that the program had mapped do not count") \
    X(process_peak_rss_bytes, BYTES, DERIVED, MEDIAN, MEMORY, RUN | TEXT | COLUMN | DIFF | PAGE, "process_rss_ratio", LESS, "process RSS", \
      "predicted peak RSS of the whole process: the replayed heap plus the memory outside it, as sampled in the recording; null if unknown") \
    X(outside_rss_bytes, BYTES, DERIVED, MEDIAN, MEMORY, RUN | TEXT | COLUMN | PAGE, NULL, LESS, "outside heap", \
      "part of process_peak_rss_bytes outside the replayed heap: files, stacks and other mappings") \
    X(peak_rss_bytes, BYTES, PLAYER, MEDIAN, MEMORY, RUN | TEXT | COLUMN | DIFF | PAGE, "rss_ratio", LESS, "peak RSS", \
      "highest private resident memory, less the player's own") \
    X(replayed_peak_live_bytes, BYTES, PLAYER, MEDIAN, MEMORY, RUN, NULL, NEITHER, "replayed peak live", \
      "highest sum of requested bytes of live blocks in the replay, whose threads may interleave differently") \
    X(peak_fragmentation, RATIO, DERIVED, MEDIAN, MEMORY, TEXT | COLUMN | DIFF | PAGE, NULL, LESS, "peak RSS/live", \
      "peak RSS divided by peak live bytes") \
    X(mean_rss_bytes, BYTES, DERIVED, MEDIAN, MEMORY, RUN | TEXT | DIFF | PAGE, NULL, LESS, "mean RSS", \
      "private resident memory, mean over the calls") \
    X(mean_live_bytes, BYTES, DERIVED, MEDIAN, MEMORY, 0, NULL, NEITHER, "mean live", \
      "requested bytes of live blocks, mean over the calls") \
    X(mean_fragmentation, RATIO, DERIVED, MEDIAN, MEMORY, TEXT | DIFF, NULL, LESS, "mean RSS/live", \
      "mean RSS divided by mean live bytes") \
    X(end_rss_bytes, BYTES, PLAYER, MEDIAN, MEMORY, RUN | TEXT, NULL, LESS, "RSS at the end", \
      "private resident memory after the last call") \
    X(rss_after_free_bytes, BYTES, PLAYER, MEDIAN, MEMORY, RUN | TEXT | DIFF | PAGE, NULL, LESS, "RSS after free-all", \
      "private resident memory after the blocks that the workload left have been freed") \
    X(rss_after_idle_bytes, BYTES, PLAYER, MEDIAN, MEMORY, RUN | TEXT | DIFF, NULL, LESS, "RSS after idle", \
      "private resident memory --idle seconds after that") \
    X(minor_faults, COUNT, PLAYER, TYPICAL, COUNTERS, RUN | TEXT, NULL, LESS, "minor page faults", \
      "page faults without input or output") \
    X(major_faults, COUNT, PLAYER, TYPICAL, COUNTERS, RUN | TEXT, NULL, LESS, "major page faults", \
      "page faults that needed input or output") \
    X(page_faults, COUNT, DERIVED, TYPICAL, COUNTERS, 0, NULL, LESS, "page faults", \
      "minor and major page faults") \
    X(context_switches, COUNT, PLAYER, TYPICAL, COUNTERS, TEXT, NULL, LESS, "context switches", \
      "voluntary and involuntary context switches of all threads") \
    X(cycles, COUNT, PLAYER, TYPICAL, COUNTERS, TEXT, NULL, LESS, "cycles", \
      "CPU cycles of all threads") \
    X(instructions, COUNT, PLAYER, TYPICAL, COUNTERS, TEXT, NULL, LESS, "instructions", \
      "instructions retired of all threads") \
    X(cache_misses, COUNT, PLAYER, TYPICAL, COUNTERS, TEXT, NULL, LESS, "cache misses", \
      "misses of the last-level cache") \
    X(dtlb_misses, COUNT, PLAYER, TYPICAL, COUNTERS, TEXT, NULL, LESS, "dTLB misses", \
      "reads that missed the data TLB") \
    X(dependencies, COUNT, PLAN, TYPICAL, DEPENDENCIES, TEXT, NULL, NEITHER, "between threads", \
      "places where a thread waits until another one has made a certain call") \
    X(blocked_waits, COUNT, PLAYER, TYPICAL, DEPENDENCIES, RUN | TEXT, NULL, LESS, "blocked", \
      "dependencies that were not satisfied when the thread reached them") \
    X(sleeps, COUNT, PLAYER, TYPICAL, DEPENDENCIES, RUN | TEXT, NULL, LESS, "slept", \
      "blocked dependencies for which the thread slept in the kernel") \
    X(coupled_waits, COUNT, PLAYER, TYPICAL, DEPENDENCIES, RUN | TEXT, NULL, NEITHER, "held back", \
      "times that a thread waited only to stay as close to the other threads as when recorded") \
    X(stalls, COUNT, PLAYER, TYPICAL, DECODER, TEXT, NULL, LESS, "stalls", \
      "times that a thread waited for the next part of a streamed workload") \
    X(stall_ns, NS, PLAYER, TYPICAL, DECODER, TEXT, NULL, LESS, "stalled for", \
      "time that threads waited because the workload was not decoded yet, summed over the threads") \
    X(stall_share, SHARE, DERIVED, TYPICAL, DECODER, TEXT, NULL, LESS, "of the threads' time", \
      "stall_ns divided by the wall time of all threads") \
    X(free_space_wait_ns, NS, PLAYER, TYPICAL, DECODER, TEXT, NULL, LESS, "waited for free space", \
      "time that threads waited because slower threads still used the windows of the stream, summed over the threads") \
    X(idle_ns, NS, PLAYER, TYPICAL, DECODER, 0, NULL, NEITHER, "decoder idle", \
      "time that the decoder waited for free space")
// clang-format on
