#compdef heaptape
_heaptape_commands=(
  'record:Run a program and record every malloc call of it and its child processes'
  'ctl:Control recording in a running process'
  'top:Show what is live while a program is being recorded'
  'upload:Upload the traces of a folder and remove them from it'
  'receive:Store the recordings that other hosts upload'
  'convert:Convert a trace into a replayable workload'
  'slice:Extract part of a workload'
  'reduce:Find a small workload that still shows a problem'
  'anonymize:Remove names from a workload'
  'merge:Merge several workloads into one'
  'replay:Replay a workload on an allocator and measure time and memory'
  'compare:Replay a workload on several allocators and compare them'
  'matrix:Replay workloads on allocators as jobs of GNU parallel or Slurm'
  'corpus:Record workloads of twelve programs and compare allocators on them'
  'advise:Find the allocator and the settings that would help, by replays'
  'stat:Print heap usage statistics of a trace, workload or aggregate'
  'symbolize:Write the names of functions into a trace or workload'
  'diff:Compare the heap usage of two recordings, and fail when it grew'
  'sql:Run an SQL query on the events and blocks of recordings'
  'report:Write an HTML report of heap usage and allocator results'
  'dump:Print the events of a trace or workload'
  'import:Convert another tool'\''s recording to a workload'
  'export:Convert a trace or workload to another tool'\''s format'
  'check:Verify every frame of a trace or workload'
  'trace_run:Replay a glibc workload file and print the figures of trace_run'
  'allocators:List the allocators that can be replayed on this machine'
)
_heaptape_record() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the trace to FILE, or to standard output for '\''-'\'' (default\: heaptape.ht; heaptape.FORMAT with --format); or upload it in segments to a server, whose URL begins with http\:// or https\://]:FILE|URL|-: _heaptape_words @files' \
    '(-F --format)'{-F+,--format=}'[write another tool'\''s format instead of a trace, while PROGRAM runs]:mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|ctf|c|json: _heaptape_words mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android ctf c json' \
    '--log-fd=[write to an inherited file descriptor instead of a file, in the format logalloc unless --format is given]:FD: _heaptape_words ' \
    '(-a --allocator)'{-a+,--allocator=}'[run PROGRAM on this allocator\: a name or path, and tunables after commas (default\: PROGRAM'\''s own)]:ALLOCATOR: _heaptape_words @allocators' \
    '(-z --compress)'{-z+,--compress=}'[set the compression of the trace; the recorder falls back from zstd to lz4 to none when it cannot keep up]:none|lz4|zstd\[\:LEVEL\]: _heaptape_words none lz4 zstd' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '--start=[start recording at once, or when '\''heaptape ctl'\'' or PROGRAM itself starts it]:now|paused: _heaptape_words now paused' \
    '--follow=[choose the child processes to record\: all, none, or those whose executable'\''s name matches a glob pattern]:all|none|PATTERN: _heaptape_words all none' \
    '--stacks=-[record the call stack of each allocation, by the unwind tables of the program and its libraries\: at most DEPTH return addresses, from 1, only the call site, to 128; or the stack of one allocation per BYTES allocated on average, 512K by default, from which the figures of call sites are estimated]::DEPTH|sample\[\:BYTES\]: _heaptape_words sample' \
    '--max-size=[stop recording when FILE reaches SIZE; PROGRAM continues untraced]:SIZE: _heaptape_words ' \
    '--aggregate=-[write no events but what is live and what was allocated by call site, in a file of some MiB that is rewritten every SECONDS, 60 by default; with --stacks=sample unless --stacks is given]::SECONDS: _heaptape_words ' \
    '--period=[with --aggregate, keep the live bytes of each call site at the end of each period of SECONDS]:SECONDS: _heaptape_words ' \
    '--flight=[keep the last SIZE of the trace in memory, or what it has of the last DURATION (30s, 5min, 1h; at most 256M unless SIZE is given), and write it with all blocks that were live before as a trace when a trigger asks for it; with --stacks=sample unless --stacks is given]:SIZE|DURATION\[,...\]: _heaptape_words ' \
    '--trigger=[with --flight, what asks for a dump besides SIGUSR2 and '\''heaptape ctl PID dump'\''\: rss>SIZE, rss+N%/DURATION, cgroup>N%, pressure>N%, oom, exit!=0 or exit, which is the default]:TRIGGER\[,...\]: _heaptape_words ' \
    '--segment=[write the trace as files of SIZE or DURATION, each of which is a trace that begins with the blocks that are live; %n in FILE is their number. The folder of them is read as one trace]:SIZE|DURATION\[,...\]: _heaptape_words ' \
    '--on-segment=[with --segment, run CMD by the shell after each segment, with its path as $1]:CMD: _heaptape_words ' \
    '--keep=[with --flight or --segment, remove older dumps or segments than the last N]:N: _heaptape_words ' \
    '--on-dump=[with --flight, run CMD by the shell after each dump, with its path as $1 and the trigger as $HEAPTAPE_TRIGGER]:CMD: _heaptape_words ' \
    '--spool=[with -o URL, keep segments below DIR until the server has them (default\: $XDG_STATE_HOME/heaptape/upload, or ~/.local/state/heaptape/upload)]:DIR: _heaptape_words @folders' \
    '--spool-limit=[with -o URL, drop the oldest segments, also those that earlier recordings left, when the spool has more than SIZE]:SIZE: _heaptape_words ' \
    '--upload-wait=[with -o URL, wait at most SECONDS for uploads after the recording has ended]:SECONDS: _heaptape_words ' \
    '--upload-token-file=[with -o URL, send the token in the first line of FILE, which is read again for each request, as '\''Authorization\: Bearer TOKEN'\'']:FILE: _heaptape_words @files' \
    '--s3=-[with -o URL, sign requests for S3, for REGION or $AWS_REGION, with $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and $AWS_SESSION_TOKEN]::REGION: _heaptape_words ' \
    '--collect=[run nothing; write the trace of processes that recorded themselves into DIR]:DIR: _heaptape_words @folders' \
    '(-p --pid)'{-p+,--pid=}'[record a process that runs already, until it exits, a signal ends heaptape, or --duration is over]:PID: _heaptape_words @processes' \
    '--duration=[with --pid, stop recording after SECONDS]:SECONDS: _heaptape_words ' \
    '--walk[with --pid, also record the blocks that are live at the start, found in the heap of glibc 2.35 to 2.40]' \
    '--wrap=[with --pid, also record an allocator whose functions have other names, such as je_malloc=malloc,je_free=free. FUNCTION is malloc, calloc, realloc, free, memalign, aligned_alloc, posix_memalign or malloc_usable_size]:NAME=FUNCTION\[,...\]: _heaptape_words ' \
    '--usable[also record the usable size of each block (malloc_usable_size)]' \
    '--maps[also record PROGRAM'\''s own calls of mmap, munmap, mremap, brk and sbrk]' \
    '--no-residency[do not record how much of its blocks of 16 KiB and more PROGRAM uses, which is measured when they are freed]' \
    '--no-pages[do not read now and then which pages of the processes are resident, for '\''heaptape stat --rss'\'']' \
    '--lossy[drop and count events instead of making PROGRAM wait for the recorder]' \
    '(-v --verbose)'{-v,--verbose}'[also report the cost of recording]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @programs'
}
_heaptape_ctl() {
  _arguments -s -S : \
    '--json[print the status as a JSON object]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @processes start stop pause resume sync reset status detach dump'
}
_heaptape_top() {
  _arguments -s -S : \
    '(-b --batch)'{-b,--batch}'[print tables one after the other instead of using the screen; so it is done where standard output is no terminal]' \
    '(-n --iterations)'{-n+,--iterations=}'[print N tables as --batch does, then exit (default\: until the recording ends)]:N: _heaptape_words ' \
    '(-d --interval)'{-d+,--interval=}'[draw every MS milliseconds]:MS: _heaptape_words ' \
    '--by=[begin with a table by call site, size or thread (default\: site if the recording has call stacks, else size)]:site|size|thread: _heaptape_words site size thread' \
    '--sort=[sort by live bytes, live blocks, growth of live bytes, allocations or bytes allocated, the last three per second]:live|blocks|growth|allocs|bytes: _heaptape_words live blocks growth allocs bytes' \
    '--top=[print at most N rows of a table (default\: 20; as many as fit on the screen)]:N: _heaptape_words ' \
    '(-p --pid)'{-p+,--pid=}'[show this process of FILE (default\: the one with the highest peak of live bytes)]:PID: _heaptape_words @processes' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @processes @files'
}
_heaptape_upload() {
  _arguments -s -S : \
    '--token-file=[send the token in the first line of FILE, which is read again for each request, as '\''Authorization\: Bearer TOKEN'\'']:FILE: _heaptape_words @files' \
    '--s3=-[sign requests for S3, for REGION or $AWS_REGION, with $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and $AWS_SESSION_TOKEN]::REGION: _heaptape_words ' \
    '--wait=[stop when nothing could be uploaded for SECONDS]:SECONDS: _heaptape_words ' \
    '(-v --verbose)'{-v,--verbose}'[print a line for each file]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @folders'
}
_heaptape_receive() {
  _arguments -s -S : \
    '--listen=[accept connections on this address; without HOST on all, and with PORT 0 on a port that is free]:HOST\:PORT: _heaptape_words ' \
    '--dir=[store the files below DIR, which is created if it is missing]:DIR: _heaptape_words @folders' \
    '--token-file=[accept only uploads with one of the tokens in FILE, one a line, which is read again for each upload]:FILE: _heaptape_words @files' \
    '--certificate=[use TLS with the certificate, and those of its issuers, in FILE (PEM)]:FILE: _heaptape_words @files' \
    '--key=[use the private key in FILE (PEM) with --certificate]:FILE: _heaptape_words @files' \
    '--max-size=[refuse files that are larger than SIZE]:SIZE: _heaptape_words ' \
    '(-v --verbose)'{-v,--verbose}'[print a line for each file and each refusal]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @folders'
}
_heaptape_convert() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the workload to FILE or to standard output (default\: NAME.htw for NAME.ht)]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[overwrite FILE if it exists]' \
    '(-p --pid)'{-p+,--pid=}'[convert this process, or every process into its own file (default\: the process with the highest peak of live bytes)]:PID|all: _heaptape_words @processes all' \
    '--strict[fail if the order is ambiguous, a freed block has no recorded allocation, or records are lost]' \
    '--window=[search this far ahead (ns) for an event that resolves contradictory timestamps]:NS: _heaptape_words ' \
    '(-l --level)'{-l+,--level=}'[zstd compression level]:N: _heaptape_words ' \
    '--no-timestamps[store only the order of events, not their times]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_slice() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the part to FILE or to standard output]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[overwrite FILE if it exists]' \
    '--from=[begin at POINT (default\: the start of the workload)]:POINT: _heaptape_words ' \
    '--to=[end before POINT (default\: the end of the workload)]:POINT: _heaptape_words ' \
    '(-t --threads)'{-t+,--threads=}'[keep only these threads\: numbers and ranges, for example 0,3-5]:LIST: _heaptape_words ' \
    '--rebase[shift timestamps so that the part begins at the start time of the workload]' \
    '(-l --level)'{-l+,--level=}'[zstd compression level]:N: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_reduce() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the reduced workload to FILE or to standard output]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[overwrite FILE if it exists]' \
    '*'{-k+,--keep=}'[what replays must still show; several have to hold together]:CONDITION: _heaptape_words ' \
    '--keep-cmd=[keep what makes this shell command exit with 0; %f is the path of the workload]:COMMAND: _heaptape_words ' \
    '(-a --allocator)'{-a+,--allocator=}'[the allocator of conditions that name none \[the allocator in LD_PRELOAD, or glibc\]]:ALLOCATOR: _heaptape_words @allocators' \
    '(-b --budget)'{-b+,--budget=}'[stop after SECONDS with the smallest workload found so far]:SECONDS: _heaptape_words ' \
    '(-r --runs)'{-r+,--runs=}'[a candidate must show it in N of N replays \[3, or 6 for times\]]:N: _heaptape_words ' \
    '(-j --jobs)'{-j+,--jobs=}'[judge N candidates at the same time \[the number of CPUs, or 1 for times\]]:N: _heaptape_words ' \
    '--floor=[in comparisons with >, a quotient of bytes needs a dividend of SIZE, or of half of the input'\''s if that is less]:SIZE: _heaptape_words ' \
    '--timeout=[stop a replay when no thread has made progress for SECONDS, and COMMAND after SECONDS; 0\: never]:SECONDS: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_anonymize() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the workload to FILE or to standard output]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[overwrite FILE if it exists]' \
    '--times=[round timestamps down to multiples of TIME (1ms, 100us)]:TIME: _heaptape_words ' \
    '--round-sizes[round sizes up to size classes\: 8, multiples of 16 up to 128, then four for each power of two]' \
    '--keep-stacks[keep call sites, with numbers instead of names and addresses]' \
    '(-l --level)'{-l+,--level=}'[zstd compression level]:N: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_merge() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the workload to FILE or to standard output]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[overwrite FILE if it exists]' \
    '*--offset=[start the second workload TIME after the first, for example 1.5s or 20ms; repeat for the third and later ones]:TIME: _heaptape_words ' \
    '(-l --level)'{-l+,--level=}'[zstd compression level]:N: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_replay() {
  _arguments -s -S : \
    '*'{-a+,--allocator=}'[replay on this allocator\: a name or a path, then tunables after commas \[the allocator in LD_PRELOAD, or glibc\]]:ALLOCATOR: _heaptape_words @allocators' \
    '--verify[check every result of the allocator instead of measuring\: overlapping, misaligned or short blocks, calloc without zeroes, lost or overwritten content]' \
    '--fragmentation[add a run that finds the blocks that pin sparse pages, at the peak of live bytes and at the end]' \
    '(-r --runs)'{-r+,--runs=}'[replay N times on each allocator and report medians]:N: _heaptape_words ' \
    '--touch=[write to each block\: its first byte and each of its pages, nothing, or every byte]:page|none|all: _heaptape_words page none all' \
    '--threads=[run one thread for each recorded thread, as fast as it can (real), or never far ahead of the others (coupled), or the first for time and the second for memory (auto); or make all calls in one thread in recorded order (one)]:auto|real|coupled|one: _heaptape_words auto real coupled one' \
    '--speed=[replay at full speed, at the recorded pace, or N times as fast as recorded]:max|recorded|xN: _heaptape_words max recorded' \
    '--idle=[measure memory again SECONDS after everything was freed; 0\: do not wait \[10 with --speed recorded or xN\]]:SECONDS: _heaptape_words ' \
    '--cpus=[run on these CPUs only\: 2,3 or 0-7]:LIST: _heaptape_words ' \
    '--timeout=[stop when no thread has made progress for SECONDS, and report the call that each is in; 0\: never]:SECONDS: _heaptape_words ' \
    '--internal-fragmentation[add a run that compares requested sizes with malloc_usable_size]' \
    '--stats-every=[add a run that reads the allocator'\''s own statistics every N calls and at marks; without this option, it is added if the recorded program called malloc_stats or jemalloc_stats]:N: _heaptape_words ' \
    '--trim-every=[ask the allocator to return memory to the kernel every N calls, by malloc_trim or its equivalent]:N: _heaptape_words ' \
    '--no-latency[omit the run that times each call]' \
    '--memory=[stream a workload whose decoded form needs more than SIZE \[a quarter of the machine'\''s memory\]]:SIZE: _heaptape_words ' \
    '--no-cache[do not keep the decoded form of a large workload in ~/.cache/heaptape, nor use one that is there]' \
    '--json[print one JSON object]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_compare() {
  _arguments -s -S : \
    '*'{-a+,--allocator=}'[compare this allocator\: a name or a path, then tunables after commas; ratios are to the first one]:ALLOCATOR: _heaptape_words @allocators' \
    '*--sweep=[repeat each allocator with each value of a tunable; several --sweep give all combinations]:VARIABLE=VALUE,VALUE...: _heaptape_words ' \
    '(-o --output)'{-o+,--output=}'[write an HTML report to FILE, with the use of the heap by the workload]:FILE: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '--real[run PROGRAM itself, or the recorded command line, under each allocator too, and print how well the replay predicted it]' \
    '(-r --runs)'{-r+,--runs=}'[replay N times on each allocator and report medians]:N: _heaptape_words ' \
    '--touch=[write to each block\: its first byte and each of its pages, nothing, or every byte]:page|none|all: _heaptape_words page none all' \
    '--threads=[run one thread for each recorded thread, as fast as it can (real), or never far ahead of the others (coupled), or the first for time and the second for memory (auto); or make all calls in one thread in recorded order (one)]:auto|real|coupled|one: _heaptape_words auto real coupled one' \
    '--speed=[replay at full speed, at the recorded pace, or N times as fast as recorded]:max|recorded|xN: _heaptape_words max recorded' \
    '--idle=[measure memory again SECONDS after everything was freed; 0\: do not wait \[10 with --speed recorded or xN\]]:SECONDS: _heaptape_words ' \
    '--cpus=[run on these CPUs only\: 2,3 or 0-7]:LIST: _heaptape_words ' \
    '--timeout=[stop when no thread has made progress for SECONDS, and report the call that each is in; 0\: never]:SECONDS: _heaptape_words ' \
    '--internal-fragmentation[add a run that compares requested sizes with malloc_usable_size]' \
    '--stats-every=[add a run that reads the allocator'\''s own statistics every N calls and at marks; without this option, it is added if the recorded program called malloc_stats or jemalloc_stats]:N: _heaptape_words ' \
    '--trim-every=[ask the allocator to return memory to the kernel every N calls, by malloc_trim or its equivalent]:N: _heaptape_words ' \
    '--no-latency[omit the run that times each call]' \
    '--memory=[stream a workload whose decoded form needs more than SIZE \[a quarter of the machine'\''s memory\]]:SIZE: _heaptape_words ' \
    '--no-cache[do not keep the decoded form of a large workload in ~/.cache/heaptape, nor use one that is there]' \
    '--json[print one JSON object]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_matrix() {
  _arguments -s -S : \
    '*'{-w+,--workload=}'[replay FILE]:FILE: _heaptape_words @files' \
    '*'{-a+,--allocator=}'[replay on this allocator, as for '\''heaptape compare'\''; ratios are to the first]:ALLOCATOR: _heaptape_words @allocators' \
    '*--sweep=[try each value of an environment variable on each allocator]:VARIABLE=VALUE,VALUE...: _heaptape_words ' \
    '(-r --runs)'{-r+,--runs=}'[replay each workload N times on each allocator]:N: _heaptape_words ' \
    '*--replay-option=[an option of '\''heaptape replay'\'' for all jobs\: --replay-option=--touch=none]:OPTION: _heaptape_words ' \
    '--engine=[run the jobs one after the other here (local), by GNU parallel (parallel), or as a job array of Slurm (slurm)]:local|parallel|slurm: _heaptape_words local parallel slurm' \
    '*--engine-option=[an option for parallel or sbatch\: --engine-option=--sshlogin=a,b]:OPTION: _heaptape_words ' \
    '--retry[run failed jobs again]' \
    '--across-machines[print ratios also where runs are of different machines]' \
    '--job=[run job N alone, as the engines do]:N: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @folders'
}
_heaptape_corpus() {
  _arguments -s -S : \
    '(-d --dir)'{-d+,--dir=}'[the folder of the corpus; list without it prints the index that came with heaptape]:DIR: _heaptape_words @folders' \
    '--install[record\: install missing programs with apt-get, as root]' \
    '--size=[record\: do so much of the usual work]:PERCENT: _heaptape_words ' \
    '--json[list\: print one JSON object]' \
    '*'{-a+,--allocator=}'[run\: replay on this allocator; ratios are to the first \[all that '\''heaptape allocators'\'' finds\]]:ALLOCATOR: _heaptape_words @allocators' \
    '(-r --runs)'{-r+,--runs=}'[run\: replay each workload N times on each allocator]:N: _heaptape_words ' \
    '--results=[run\: the folder of the results \[results in the folder of the corpus\]]:DIR: _heaptape_words @folders' \
    '--engine=[run\: as for '\''heaptape matrix'\'']:local|parallel|slurm: _heaptape_words local parallel slurm' \
    '*--engine-option=[run\: as for '\''heaptape matrix'\'']:OPTION: _heaptape_words ' \
    '--retry[run\: run failed jobs again]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words record list run'
}
_heaptape_advise() {
  _arguments -s -S : \
    '(-a --allocator)'{-a+,--allocator=}'[the allocator that the program uses at present, with its tunables after commas \[the recorded one, or glibc\]]:ALLOCATOR: _heaptape_words @allocators' \
    '(-b --budget)'{-b+,--budget=}'[take about SECONDS; one run on the present allocator is made in any case]:SECONDS: _heaptape_words ' \
    '--rank=[sort the list by CPU time, peak RSS, mean RSS, RSS at the end, or RSS after --idle]:cpu|peak|mean|end|idle: _heaptape_words cpu peak mean end idle' \
    '--speed=[replay at full speed, at the recorded pace, or N times as fast as recorded]:max|recorded|xN: _heaptape_words max recorded' \
    '--idle=[measure memory again SECONDS after everything was freed]:SECONDS: _heaptape_words ' \
    '--timeout=[stop the replay of a setting when no thread has made progress for SECONDS; 0\: never]:SECONDS: _heaptape_words ' \
    '--json[print one JSON object]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_stat() {
  _arguments -s -S : \
    '--json[print one JSON object for each FILE]' \
    '--brief[print only the totals; a workload stores them in its summary, so the rest of it is not read, and the totals are not compared with it]' \
    '--by=[print what each call site allocated and what of it is live, by the malloc API (site) or from the program'\''s own pools (pool); needs a recording made with --stacks]:site|pool: _heaptape_words site pool' \
    '--format=[with --by\: output format; folded for flame graphs, pprof for '\''go tool pprof'\'', speedscope and firefox as JSON for www.speedscope.app and profiler.firefox.com]:text|json|folded|pprof|speedscope|firefox: _heaptape_words text json folded pprof speedscope firefox' \
    '--weight=[with --by\: sort by this and use it as the weight of folded, speedscope and firefox\: bytes live at the peak, bytes live at the end, allocated bytes, number of allocations, steady growth over the whole run, or bytes allocated between --from and --to and live at --to \[peak, or span with --from or --to\]]:peak|end|bytes|allocs|growth|span: _heaptape_words peak end bytes allocs growth span' \
    '--from=[with --by\: count what was allocated from POINT on and is live at --to, by call site, thread and size (default\: the start)]:POINT: _heaptape_words ' \
    '--to=[with --by\: end of that span (default\: the end)]:POINT: _heaptape_words ' \
    '--rss[print what the resident memory (RSS) of the process with most of it was made up of, and which blocks pin free memory; needs a trace]' \
    '--at=[with --rss\: when RSS was highest, at the last map of pages, or at the first one at or after POINT]:peak|end|POINT: _heaptape_words peak end' \
    '--top=[with --by\: print this many call sites as text, 0 for all]:N: _heaptape_words ' \
    '--debug-dir=[look for the recorded executables, libraries and their debug files in DIR first, as '\''heaptape symbolize'\'' does]:DIR\[\:DIR...\]: _heaptape_words @folders' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_symbolize() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write a copy with the names instead of changing the file]:FILE: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace the file of -o if it exists]' \
    '--debug-dir=[look for the recorded executables and libraries, and for their debug files, in DIR first\: by build ID as DIR/.build-id/xx/yyy and yyy.debug, by their recorded path below DIR, and by their name in DIR]:DIR\[\:DIR...\]: _heaptape_words @folders' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_diff() {
  _arguments -s -S : \
    '*--fail-on=[exit with status 1 if B exceeds LIMIT (see above)]:LIMIT: _heaptape_words ' \
    '--json[print one JSON object]' \
    '--junit=[write the limits as test cases in JUnit'\''s XML to FILE]:FILE: _heaptape_words @files' \
    '--markdown=[append the limits and figures as Markdown tables to FILE]:FILE: _heaptape_words @files' \
    '--top=[print this many call sites, 0 for all]:N: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_sql() {
  _arguments -s -S : \
    '--json[print one JSON object]' \
    '--csv[print CSV, with the names of the columns in the first line]' \
    '--csv-safe[with --csv, put an apostrophe before texts that a spreadsheet would evaluate\: those that begin with = + - @, a tab or a line end]' \
    '--max-memory=[stop a query for which SQLite allocates more than SIZE (default\: no limit)]:SIZE: _heaptape_words ' \
    '--timeout=[stop after SECONDS (default\: no limit)]:SECONDS: _heaptape_words ' \
    '--tables[print the tables, their columns, types, units and meanings, and exit]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_report() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the HTML report to this file, - for standard output \[FILE.html, without the suffix of a trace or workload\]]:REPORT: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace REPORT if it exists]' \
    '--open[open the HTML report in the browser, by xdg-open]' \
    '(-d --diff)'{-d,--diff}'[compare two files side by side, as a table and, with -o or --open, as an HTML report]' \
    '--pool[print the ratios of allocators from all runs in JSON files of one workload on one machine]' \
    '--across-machines[with --pool, also where runs are of different machines]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_dump() {
  _arguments -s -S : \
    '(-F --format)'{-F+,--format=}'[print lines of text, or one JSON object per line]:text|json: _heaptape_words text json' \
    '(-p --pid)'{-p+,--pid=}'[print only this process of a trace (default\: all processes)]:PID: _heaptape_words @processes' \
    '*'{-k+,--kind=}'[print only events of this kind, such as malloc or thread.start; may be repeated]:KIND: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_import() {
  _arguments -s -S : \
    '(-F --format)'{-F+,--format=}'[read FILE in this format (see above)]:mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|heaptrack|mallocbench|json: _heaptape_words mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android heaptrack mallocbench json' \
    '(-o --output)'{-o+,--output=}'[write to FILE, or to standard output for - (default\: the name of the input with .htw appended, or .ht with --trace)]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '(-p --pid)'{-p+,--pid=}'[import only process PID, or each process into a workload of its own (default\: the process with the highest peak of live bytes)]:PID|all: _heaptape_words @processes all' \
    '--trace[write a raw trace of all processes instead of a workload]' \
    '(-k --keep-going)'{-k,--keep-going}'[skip invalid records and report how many there were]' \
    '--strict[fail if the order of events is ambiguous or a freed block was never allocated]' \
    '(-l --level)'{-l+,--level=}'[compress with this zstd level]:N: _heaptape_words ' \
    '--no-timestamps[leave out the timestamps of events]' \
    '--list[print the names of the formats and exit]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_export() {
  _arguments -s -S : \
    '(-F --format)'{-F+,--format=}'[write this format (see above)]:mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|ctf|c|json|csv|parquet: _heaptape_words mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android ctf c json csv parquet' \
    '(-t --table)'{-t+,--table=}'[write this table, with --format csv or parquet]:events|blocks|sites|processes|samples: _heaptape_words events blocks sites processes samples' \
    '--partition[with --table, write one file for each process, below the folder FILE\: TABLE/host=HOST/recording=TIME/pid=PID/PROCESS.FORMAT]' \
    '--csv-safe[with --format csv, put an apostrophe before texts that a spreadsheet would evaluate\: those that begin with = + - @, a tab or a line end]' \
    '(-o --output)'{-o+,--output=}'[write to FILE (default\: standard output); %p in FILE stands for the process id and makes one file per process]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '(-p --pid)'{-p+,--pid=}'[export only process PID of a trace (default\: all processes if the format holds several, else the one with the highest peak of live bytes)]:PID: _heaptape_words @processes' \
    '--no-timestamps[leave out timestamps, in a format that has them]' \
    '--list[print the names of the formats and exit]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_check() {
  _arguments -s -S : \
    '--salvage[copy the intact frames of a damaged trace to the file given with -o]' \
    '(-o --output)'{-o+,--output=}'[write the salvaged trace to FILE, or to standard output for '\''-'\'']:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_trace_run() {
  _arguments -s -S : \
    '*'{-a+,--allocator=}'[replay on this allocator\: a name or a path, then tunables after commas \[the allocator in LD_PRELOAD, or glibc\]]:ALLOCATOR: _heaptape_words @allocators' \
    '--touch=[write to each block\: its first byte and each of its pages, nothing, or every byte as trace_run does]:page|none|all: _heaptape_words page none all' \
    '--timeout=[stop when no thread has made progress for SECONDS, and report the call that each is in; 0\: never]:SECONDS: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_allocators() {
  _arguments -s -S : \
    '--json[print one JSON object]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[say nothing on standard error but errors]' \
    '--color=[colour the output; auto\: on a terminal, unless NO_COLOR is set]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words '
}
# Below this line by hand; above it by tools/generate.

# Words, and for each kind @KIND what there is of it.
_heaptape_words() {
  local word
  local -a words_there alternatives
  for word; do
    case $word in
      @files) alternatives+=('files:file:_files') ;;
      @folders) alternatives+=('directories:directory:_files -/') ;;
      @allocators)
        words_there+=(${${(f)"$(_call_program allocators heaptape allocators 2>/dev/null)"}%% *})
        alternatives+=('files:library:_files')
        ;;
      @processes) alternatives+=('processes:process:_pids') ;;
      @programs) alternatives+=('commands:program:_command_names -e') ;;
      *) words_there+=($word) ;;
    esac
  done
  (( $#words_there )) && alternatives=("values:value:($words_there)" $alternatives)
  (( $#alternatives )) && _alternative $alternatives
}

_heaptape() {
  local command=$words[2] program=${words[(i)--]}
  if (( program < CURRENT )); then
    # What belongs after '--', as if it stood alone.
    shift program words
    (( CURRENT -= program ))
    _normal
  elif (( CURRENT == 2 )) || [[ $command == help && $CURRENT -eq 3 ]]; then
    if [[ $PREFIX == -* ]]; then
      compadd -- --help --version
    else
      _describe command _heaptape_commands -- '(help)'
    fi
  elif (( $+functions[_heaptape_$command] )); then
    shift words
    (( CURRENT -= 1 ))
    _heaptape_$command
  fi
}

_heaptape "$@"
