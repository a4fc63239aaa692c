#compdef heaptape
_heaptape_commands=(
  'doctor:Explain why a process uses its memory'
  'record:Run a program and record every malloc call of its processes'
  'stat:Print heap usage statistics of a trace, workload or aggregate'
  'top:Show live memory while a program is recorded'
  'report:Write an HTML report of heap usage and allocator results'
  'compare:Replay a workload on several allocators and compare them'
  'advise:Find the best allocator and settings by replaying a workload'
  'ctl:Control recording in a running process'
  'check:Verify a file written by heaptape'
  'symbolize:Store function names in a trace or workload'
  'corpus:Record 40 programs and compare allocators on their workloads'
  'diff:Compare the heap usage of two recordings and fail if it grew'
  'dump:Print the events of a trace or workload'
  'sql:Run an SQL query on the events and blocks of recordings'
  'replay:Replay a workload on an allocator and measure time and memory'
  'allocators:List the allocators that can be replayed on this machine'
  'reduce:Find a small workload that still shows a problem'
  'matrix:Replay workloads on allocators as jobs of GNU parallel or Slurm'
  'import:Convert another tool'\''s recording to a workload'
  'export:Convert a trace or workload to another tool'\''s format'
  'anonymize:Remove names from a workload'
  'trace_run:Replay a glibc workload file and print the figures of trace_run'
  'upload:Upload the traces in a directory and delete them'
  'receive:Store the recordings that other hosts upload'
  'convert:Convert a trace into a replayable workload'
  'slice:Extract part of a workload'
  'merge:Merge several workloads into one'
)
_heaptape_doctor() {
  _arguments -s -S : \
    '--watch=[after the first answer, sample for TIME, such as 60s or 10m, and judge growth]:TIME: _heaptape_words ' \
    '--allocator-stats[read the statistics of jemalloc or tcmalloc by calls in the process, which stop a thread]' \
    '--try[if malloc holds free memory, ask, call its function that returns the memory, and print the effect]' \
    '--yes[with --try\: do not ask]' \
    '(-o --output)'{-o+,--output=}'[with -- PROGRAM\: keep the recording in FILE]:FILE: _heaptape_words @files' \
    '--json[print one JSON object]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @processes @files'
}
_heaptape_record() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the trace to FILE, to standard output (-) or to a server (default\: heaptape.ht)]:FILE|URL|-: _heaptape_words @files' \
    '(-F --format)'{-F+,--format=}'[write another tool'\''s format instead of a trace]:mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|ctf|dhat|perfetto|c|json: _heaptape_words mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android ctf dhat perfetto c json' \
    '--log-fd=[write to this inherited file descriptor]:FD: _heaptape_words ' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '(-z --compress)'{-z+,--compress=}'[compress\: none, lz4, zstd\[\:LEVEL\]]:none|lz4|zstd\[\:LEVEL\]: _heaptape_words none lz4 zstd' \
    '--max-size=[stop when FILE reaches SIZE]:SIZE: _heaptape_words ' \
    '--start=[start now, or with '\''heaptape ctl'\'']:now|paused: _heaptape_words now paused' \
    '--follow=[record children\: all, none or PATTERN]:all|none|PATTERN: _heaptape_words all none' \
    '(-a --allocator)'{-a+,--allocator=}'[run PROGRAM on this allocator\: a name or path]:ALLOCATOR: _heaptape_words @allocators' \
    '--stacks=-[record call stacks, of all allocations or a sample]::DEPTH|sample\[\:BYTES\]: _heaptape_words sample' \
    '--usable[also record usable sizes (malloc_usable_size)]' \
    '--maps[also record calls of mmap, munmap, brk and so on]' \
    '--no-residency[do not measure the resident part of big blocks]' \
    '--no-pages[do not sample resident pages (for '\''stat --rss'\'')]' \
    '--lossy[drop events rather than slow down PROGRAM]' \
    '--clock=[read the clock rarely or always]:sparse|exact: _heaptape_words sparse exact' \
    '--aggregate=-[write totals by call site, every SECONDS \[60\]]::SECONDS: _heaptape_words ' \
    '--period=[with --aggregate\: set the period]:SECONDS: _heaptape_words ' \
    '--flight=[keep SIZE or DURATION of events, dump on a trigger]:SIZE|DURATION\[,...\]: _heaptape_words ' \
    '--trigger=[with --flight\: set what triggers a dump \[exit\]]:TRIGGER\[,...\]: _heaptape_words ' \
    '--on-dump=[with --flight\: run CMD after each; $1 is its path]:CMD: _heaptape_words ' \
    '--segment=[write the trace as files of SIZE or DURATION]:SIZE|DURATION\[,...\]: _heaptape_words ' \
    '--on-segment=[with --segment\: run CMD after each; $1 is its path]:CMD: _heaptape_words ' \
    '--keep=[keep only the last N dumps or segments]:N: _heaptape_words ' \
    '--spool=[keep segments in DIR until they are uploaded]:DIR: _heaptape_words @folders' \
    '--spool-limit=[drop the oldest segments above SIZE]:SIZE: _heaptape_words ' \
    '--upload-wait=[wait for uploads at the end]:SECONDS: _heaptape_words ' \
    '--upload-timeout=[cancel requests that stall]:SECONDS: _heaptape_words ' \
    '--upload-token-file=[send the token in the first line of FILE]:FILE: _heaptape_words @files' \
    '--s3=-[sign requests for S3]::REGION: _heaptape_words ' \
    '(-p --pid)'{-p+,--pid=}'[attach to a running process and record it]:PID: _heaptape_words @processes' \
    '--duration=[with --pid\: stop after SECONDS]:SECONDS: _heaptape_words ' \
    '--walk[with --pid\: also record blocks live at the start]' \
    '--wrap=[record functions with other names]:NAME=FUNCTION\[,...\]: _heaptape_words ' \
    '--collect=[write the trace of programs that recorded to DIR]:DIR: _heaptape_words @folders' \
    '(-v --verbose)'{-v,--verbose}'[also report the cost of recording]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @programs'
}
_heaptape_stat() {
  _arguments -s -S : \
    '--json[print one JSON object for each FILE]' \
    '--brief[print only the totals]' \
    '(-v --verbose)'{-v,--verbose}'[print all tables\: requests, sizes, lifetimes, threads]' \
    '--by=[print a table by call site, of malloc (site) or of the program'\''s own pools (pool)]:site|pool: _heaptape_words site pool' \
    '--format=[with --by\: print text, JSON, or a profile for another viewer]:text|json|folded|pprof|speedscope|firefox|jeprof: _heaptape_words text json folded pprof speedscope firefox jeprof' \
    '--weight=[with --by\: sort by this \[peak, or span with --from or --to\]]:peak|end|bytes|allocs|growth|span: _heaptape_words peak end bytes allocs growth span' \
    '--from=[with --by\: count only blocks allocated from POINT on (default\: the start)]:POINT: _heaptape_words ' \
    '--to=[with --by\: count only blocks live at POINT (default\: the end)]:POINT: _heaptape_words ' \
    '--rss[print the composition of resident memory (RSS) of a trace]' \
    '--at=[with --rss\: at the highest RSS, at the end, or at POINT]:peak|end|POINT: _heaptape_words peak end' \
    '--top=[with --by\: print this many call sites as text, 0 for all]:N: _heaptape_words ' \
    '--wrappers[list the program'\''s allocation wrappers, which call sites omit]' \
    '--debug-dir=[search DIR first for executables and debug files]:DIR\[\:DIR...\]: _heaptape_words @folders' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_top() {
  _arguments -s -S : \
    '(-b --batch)'{-b,--batch}'[print successive tables instead of using the screen]' \
    '(-n --iterations)'{-n+,--iterations=}'[print N tables as --batch does, then exit (default\: until the recording ends)]:N: _heaptape_words ' \
    '(-d --interval)'{-d+,--interval=}'[redraw every MS milliseconds]:MS: _heaptape_words ' \
    '--by=[show this table first (default\: site if the recording has call stacks, else size)]:site|size|thread: _heaptape_words site size thread' \
    '--sort=[sort by live bytes, live blocks, growth, allocations or allocated bytes]:live|blocks|growth|allocs|bytes: _heaptape_words live blocks growth allocs bytes' \
    '--top=[print at most N rows of a table (default\: 20; the height of the screen)]:N: _heaptape_words ' \
    '(-p --pid)'{-p+,--pid=}'[show this process of FILE (default\: the one with the highest peak of live bytes)]:PID: _heaptape_words @processes' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @processes @files'
}
_heaptape_report() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the report to this file, or to standard output for - \[FILE.html\]]:REPORT: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace REPORT if it exists]' \
    '--open[open the HTML report in the browser with xdg-open]' \
    '(-d --diff)'{-d,--diff}'[compare two files side by side, as a table and, with -o or --open, as an HTML report]' \
    '--pool[print the ratios of allocators from all runs in JSON files of one workload on one machine]' \
    '--across-machines[with --pool, also combine runs on different machines]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_compare() {
  _arguments -s -S : \
    '*'{-a+,--allocator=}'[compare this allocator\: a name or a path, then tunables after commas; ratios are to the first one]:ALLOCATOR: _heaptape_words @allocators' \
    '*--sweep=[repeat each allocator with each value of a tunable; several --sweep give all combinations]:VARIABLE=VALUE,VALUE...: _heaptape_words ' \
    '(-o --output)'{-o+,--output=}'[write an HTML report of the results and the workload'\''s heap usage]:FILE: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '--real[also run PROGRAM, or the recorded command line, on each allocator]' \
    '--placement=[search the best placement of the blocks; auto\: if the workload has at most 4 million calls]:auto|always|never: _heaptape_words auto always never' \
    '(-r --runs)'{-r+,--runs=}'[replay N times on each allocator and report medians]:N: _heaptape_words ' \
    '--touch=[write to each block\: its first byte and each of its pages, nothing, or every byte]:page|none|all: _heaptape_words page none all' \
    '--threads=[choose how the recorded threads run]:auto|real|coupled|one: _heaptape_words auto real coupled one' \
    '--speed=[replay at full speed, at the recorded pace, or N times as fast as recorded]:max|recorded|xN: _heaptape_words max recorded' \
    '--idle=[measure memory again SECONDS after everything was freed \[10 with --speed recorded or xN\]]:SECONDS: _heaptape_words ' \
    '--cpus=[run on these CPUs only\: 2,3 or 0-7]:LIST: _heaptape_words ' \
    '--timeout=[stop when no thread has made progress for SECONDS; 0\: never]:SECONDS: _heaptape_words ' \
    '--internal-fragmentation[add a run that compares requested sizes with malloc_usable_size]' \
    '--stats-every=[add a run that reads the allocator'\''s own statistics every N calls]:N: _heaptape_words ' \
    '--trim-every=[ask the allocator to return memory to the kernel every N calls]:N: _heaptape_words ' \
    '--no-latency[omit the run that times each call]' \
    '--memory=[stream a workload whose decoded form needs more than SIZE \[a quarter of the machine'\''s memory\]]:SIZE: _heaptape_words ' \
    '--no-cache[neither read nor write ~/.cache/heaptape]' \
    '--json[print one JSON object]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_advise() {
  _arguments -s -S : \
    '(-a --allocator)'{-a+,--allocator=}'[compare with this allocator\: a name or path, then tunables \[the recorded one, or glibc\]]:ALLOCATOR: _heaptape_words @allocators' \
    '(-b --budget)'{-b+,--budget=}'[limit the run time to about SECONDS]:SECONDS: _heaptape_words ' \
    '--rank=[sort the list by CPU time, peak RSS, mean RSS, RSS at the end, or RSS after --idle]:cpu|peak|mean|end|idle: _heaptape_words cpu peak mean end idle' \
    '--speed=[replay at full speed, at the recorded pace, or N times as fast as recorded]:max|recorded|xN: _heaptape_words max recorded' \
    '--idle=[measure memory again SECONDS after everything was freed]:SECONDS: _heaptape_words ' \
    '--timeout=[stop a replay when no thread has made progress for SECONDS; 0\: never]:SECONDS: _heaptape_words ' \
    '--real[also run PROGRAM, or the recorded command line, with the best settings]' \
    '--json[print one JSON object]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_ctl() {
  _arguments -s -S : \
    '--json[print the status as a JSON object]' \
    '--timeout=[stop waiting for the recorder after SECONDS]:SECONDS: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @processes start stop pause resume sync reset status detach dump'
}
_heaptape_check() {
  _arguments -s -S : \
    '--salvage[copy the intact frames of a damaged trace to the file given with -o]' \
    '(-o --output)'{-o+,--output=}'[write the salvaged trace to FILE, or to standard output for '\''-'\'']:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_symbolize() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write a copy with the names instead of changing the file]:FILE: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace the file of -o if it exists]' \
    '--debug-dir=[search DIR first for executables and debug files]:DIR\[\:DIR...\]: _heaptape_words @folders' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_corpus() {
  _arguments -s -S : \
    '(-d --dir)'{-d+,--dir=}'[use the corpus in DIR; without it, list prints heaptape'\''s own index]:DIR: _heaptape_words @folders' \
    '--install[with record\: install missing programs with apt-get, as root]' \
    '--size=[with record\: scale the work of each program]:PERCENT: _heaptape_words ' \
    '--json[with list\: print one JSON object]' \
    '*'{-a+,--allocator=}'[with run\: replay on this allocator; ratios are to the first \[all that '\''heaptape allocators'\'' finds\]]:ALLOCATOR: _heaptape_words @allocators' \
    '(-r --runs)'{-r+,--runs=}'[with run\: replay each workload N times on each allocator]:N: _heaptape_words ' \
    '--results=[with run\: write the results to DIR \[results in the corpus\]]:DIR: _heaptape_words @folders' \
    '--against=[with run\: also print significant changes since the run with the results in DIR]:DIR: _heaptape_words @folders' \
    '--engine=[with run\: as for '\''heaptape matrix'\'']:local|parallel|slurm: _heaptape_words local parallel slurm' \
    '*--engine-option=[with run\: as for '\''heaptape matrix'\'']:OPTION: _heaptape_words ' \
    '--retry[with run\: run failed jobs again]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words record list run'
}
_heaptape_diff() {
  _arguments -s -S : \
    '*--fail-on=[exit with status 1 if B exceeds LIMIT (see below)]:LIMIT: _heaptape_words ' \
    '--json[print one JSON object]' \
    '--junit=[write the limits as test cases in JUnit'\''s XML to FILE]:FILE: _heaptape_words @files' \
    '--markdown=[append the limits and figures as Markdown tables to FILE]:FILE: _heaptape_words @files' \
    '--top=[print this many call sites, 0 for all]:N: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_dump() {
  _arguments -s -S : \
    '(-F --format)'{-F+,--format=}'[print lines of text, or one JSON object per line]:text|json: _heaptape_words text json' \
    '(-p --pid)'{-p+,--pid=}'[print only this process of a trace (default\: all processes)]:PID: _heaptape_words @processes' \
    '*'{-k+,--kind=}'[print only events of this kind, such as malloc or thread.start; may be repeated]:KIND: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_sql() {
  _arguments -s -S : \
    '--json[print one JSON object]' \
    '--csv[print CSV with the names of the columns in the first line]' \
    '--csv-safe[with --csv, mark cells that a spreadsheet would evaluate]' \
    '--max-memory=[stop a query for which SQLite allocates more than SIZE (default\: no limit)]:SIZE: _heaptape_words ' \
    '--timeout=[stop after SECONDS (default\: no limit)]:SECONDS: _heaptape_words ' \
    '--tables[print the tables, their columns, types, units and meanings, and exit]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_replay() {
  _arguments -s -S : \
    '*'{-a+,--allocator=}'[replay on this allocator\: a name or path, then tunables \[the allocator in LD_PRELOAD, or glibc\]]:ALLOCATOR: _heaptape_words @allocators' \
    '--verify[check every result of the allocator instead of measuring]' \
    '--fragmentation[add a run that finds the blocks that pin sparse pages]' \
    '(-r --runs)'{-r+,--runs=}'[replay N times on each allocator and report medians]:N: _heaptape_words ' \
    '--touch=[write to each block\: its first byte and each of its pages, nothing, or every byte]:page|none|all: _heaptape_words page none all' \
    '--threads=[choose how the recorded threads run]:auto|real|coupled|one: _heaptape_words auto real coupled one' \
    '--speed=[replay at full speed, at the recorded pace, or N times as fast as recorded]:max|recorded|xN: _heaptape_words max recorded' \
    '--idle=[measure memory again SECONDS after everything was freed \[10 with --speed recorded or xN\]]:SECONDS: _heaptape_words ' \
    '--cpus=[run on these CPUs only\: 2,3 or 0-7]:LIST: _heaptape_words ' \
    '--timeout=[stop when no thread has made progress for SECONDS; 0\: never]:SECONDS: _heaptape_words ' \
    '--internal-fragmentation[add a run that compares requested sizes with malloc_usable_size]' \
    '--stats-every=[add a run that reads the allocator'\''s own statistics every N calls]:N: _heaptape_words ' \
    '--trim-every=[ask the allocator to return memory to the kernel every N calls]:N: _heaptape_words ' \
    '--no-latency[omit the run that times each call]' \
    '--memory=[stream a workload whose decoded form needs more than SIZE \[a quarter of the machine'\''s memory\]]:SIZE: _heaptape_words ' \
    '--no-cache[neither read nor write ~/.cache/heaptape]' \
    '--json[print one JSON object]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_allocators() {
  _arguments -s -S : \
    '--json[print one JSON object]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words '
}
_heaptape_reduce() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the reduced workload to FILE or to standard output]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '*'{-k+,--keep=}'[require that replays still show this]:CONDITION: _heaptape_words ' \
    '--keep-cmd=[require that this shell command exits with 0; %f is the path of the workload]:COMMAND: _heaptape_words ' \
    '(-a --allocator)'{-a+,--allocator=}'[use this allocator for conditions that name no allocator \[the allocator in LD_PRELOAD, or glibc\]]:ALLOCATOR: _heaptape_words @allocators' \
    '(-b --budget)'{-b+,--budget=}'[stop after SECONDS with the smallest workload found so far]:SECONDS: _heaptape_words ' \
    '(-r --runs)'{-r+,--runs=}'[require the problem in N of N replays of a candidate \[3, or 6 for times\]]:N: _heaptape_words ' \
    '(-j --jobs)'{-j+,--jobs=}'[test N candidates at the same time \[the number of CPUs, or 1 for times\]]:N: _heaptape_words ' \
    '--floor=[set the minimum dividend of a quotient of bytes]:SIZE: _heaptape_words ' \
    '--timeout=[stop a replay without progress, or COMMAND, after SECONDS; 0\: never]:SECONDS: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_matrix() {
  _arguments -s -S : \
    '*'{-w+,--workload=}'[replay FILE]:FILE: _heaptape_words @files' \
    '*'{-a+,--allocator=}'[replay on this allocator, as for '\''heaptape compare'\''; ratios are to the first]:ALLOCATOR: _heaptape_words @allocators' \
    '*--sweep=[try each value of an environment variable on each allocator]:VARIABLE=VALUE,VALUE...: _heaptape_words ' \
    '(-r --runs)'{-r+,--runs=}'[replay each workload N times on each allocator]:N: _heaptape_words ' \
    '*--replay-option=[an option of '\''heaptape replay'\'' for all jobs\: --replay-option=--touch=none]:OPTION: _heaptape_words ' \
    '--engine=[run the jobs here one by one, by GNU parallel, or as a job array of Slurm]:local|parallel|slurm: _heaptape_words local parallel slurm' \
    '*--engine-option=[an option for parallel or sbatch\: --engine-option=--sshlogin=a,b]:OPTION: _heaptape_words ' \
    '--retry[run failed jobs again]' \
    '--across-machines[also combine runs on different machines]' \
    '--job=[run only job N; used by the engines]:N: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @folders'
}
_heaptape_import() {
  _arguments -s -S : \
    '(-F --format)'{-F+,--format=}'[read FILE in this format (see below)]:mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|heaptrack|mallocbench|json: _heaptape_words mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android heaptrack mallocbench json' \
    '(-o --output)'{-o+,--output=}'[write to FILE, or to standard output for - (default\: FILE.htw, or FILE.ht with --trace)]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '(-p --pid)'{-p+,--pid=}'[import only this process, or each into its own workload (default\: the one with the highest peak of live bytes)]:PID|all: _heaptape_words @processes all' \
    '--trace[write a raw trace of all processes instead of a workload]' \
    '(-k --keep-going)'{-k,--keep-going}'[skip invalid records and report how many there were]' \
    '--strict[fail if the order of events is ambiguous or a freed block was never allocated]' \
    '(-l --level)'{-l+,--level=}'[set the zstd compression level]:N: _heaptape_words ' \
    '--no-timestamps[omit the timestamps of events]' \
    '--list[print the names of the formats and exit]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_export() {
  _arguments -s -S : \
    '(-F --format)'{-F+,--format=}'[write this format (see below); for folded|pprof|speedscope|firefox|jeprof, use '\''heaptape stat --by site'\'']:mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|ctf|dhat|perfetto|c|json|csv|parquet: _heaptape_words mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android ctf dhat perfetto c json csv parquet' \
    '(-t --table)'{-t+,--table=}'[write this table, with --format csv or parquet]:events|blocks|sites|processes|samples: _heaptape_words events blocks sites processes samples' \
    '--partition[with --table, write one file for each process below the directory FILE]' \
    '--csv-safe[with --format csv, mark cells that a spreadsheet would evaluate]' \
    '(-o --output)'{-o+,--output=}'[write to FILE (default\: standard output)]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '(-p --pid)'{-p+,--pid=}'[export only this process of a trace]:PID: _heaptape_words @processes' \
    '--no-timestamps[omit timestamps]' \
    '--list[print the names of the formats and exit]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_anonymize() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the workload to FILE or to standard output]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '--times=[round timestamps down to multiples of TIME (1ms, 100us)]:TIME: _heaptape_words ' \
    '--round-sizes[round sizes up to size classes]' \
    '--keep-stacks[keep call sites, with numbers instead of names and addresses]' \
    '(-l --level)'{-l+,--level=}'[set the zstd compression level]:N: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_trace_run() {
  _arguments -s -S : \
    '*'{-a+,--allocator=}'[replay on this allocator\: a name or path, then tunables \[the allocator in LD_PRELOAD, or glibc\]]:ALLOCATOR: _heaptape_words @allocators' \
    '--touch=[write to each block\: its first byte and each of its pages, nothing, or every byte as trace_run does]:page|none|all: _heaptape_words page none all' \
    '--timeout=[stop when no thread has made progress for SECONDS; 0\: never]:SECONDS: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_upload() {
  _arguments -s -S : \
    '--token-file=[send the token in the first line of FILE]:FILE: _heaptape_words @files' \
    '--s3=-[sign requests for S3, for REGION or $AWS_REGION]::REGION: _heaptape_words ' \
    '--timeout=[cancel a request that stalls for SECONDS]:SECONDS: _heaptape_words ' \
    '--wait=[stop after SECONDS without a successful upload]:SECONDS: _heaptape_words ' \
    '(-v --verbose)'{-v,--verbose}'[print a line for each file]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @folders'
}
_heaptape_receive() {
  _arguments -s -S : \
    '--listen=[accept connections on this address]:HOST\:PORT: _heaptape_words ' \
    '--dir=[store the files below DIR]:DIR: _heaptape_words @folders' \
    '--token-file=[accept only uploads with one of the tokens in FILE]:FILE: _heaptape_words @files' \
    '--certificate=[use TLS with the certificate in FILE (PEM)]:FILE: _heaptape_words @files' \
    '--key=[use the private key in FILE (PEM) with --certificate]:FILE: _heaptape_words @files' \
    '--max-size=[refuse files that are larger than SIZE]:SIZE: _heaptape_words ' \
    '(-v --verbose)'{-v,--verbose}'[print a line for each file and each refusal]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @folders'
}
_heaptape_convert() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the workload to FILE or to standard output (default\: NAME.htw for NAME.ht)]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '(-p --pid)'{-p+,--pid=}'[convert this process, or each into its own file (default\: the one with the highest peak of live bytes)]:PID|all: _heaptape_words @processes all' \
    '--strict[fail if the order is ambiguous, a freed block has no recorded allocation, or records are lost]' \
    '--window=[search this far ahead (ns) for an event that resolves contradictory timestamps]:NS: _heaptape_words ' \
    '--heap=[convert only the calls of one allocator in the table of '\''heaptape stat -v'\'' (default\: all)]:ALLOCATOR: _heaptape_words @allocators' \
    '(-l --level)'{-l+,--level=}'[set the zstd compression level]:N: _heaptape_words ' \
    '--no-timestamps[store only the order of events, not their times]' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_slice() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the part to FILE or to standard output]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '--from=[begin at POINT (default\: the start of the workload)]:POINT: _heaptape_words ' \
    '--to=[end before POINT (default\: the end of the workload)]:POINT: _heaptape_words ' \
    '(-t --threads)'{-t+,--threads=}'[keep only these threads\: numbers and ranges, for example 0,3-5]:LIST: _heaptape_words ' \
    '--rebase[shift timestamps so that the part begins at the start time of the workload]' \
    '(-l --level)'{-l+,--level=}'[set the zstd compression level]:N: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
}
_heaptape_merge() {
  _arguments -s -S : \
    '(-o --output)'{-o+,--output=}'[write the workload to FILE or to standard output]:FILE|-: _heaptape_words @files' \
    '(-f --force)'{-f,--force}'[replace FILE if it exists]' \
    '*--offset=[start the second workload TIME after the first; repeat for the third and later ones]:TIME: _heaptape_words ' \
    '(-l --level)'{-l+,--level=}'[set the zstd compression level]:N: _heaptape_words ' \
    '(-h --help)'{-h,--help}'[show this help and exit]' \
    '(-q --quiet)'{-q,--quiet}'[print only errors on standard error]' \
    '--color=[use colour\: auto, always or never]:auto|always|never: _heaptape_words auto always never' \
    '*:operand: _heaptape_words @files'
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
