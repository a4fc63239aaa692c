declare -gA _heaptape_options=(
  [record]=' --output= -o --format= -F --log-fd= --allocator= -a --compress= -z --force -f --start= --follow= --stacks= --max-size= --collect= --pid= -p --duration= --walk --wrap= --usable --maps --no-residency --no-pages --lossy --verbose -v --help -h --quiet -q --color='
  [ctl]=' --json --help -h --quiet -q --color='
  [top]=' --batch -b --iterations= -n --interval= -d --by= --sort= --top= --pid= -p --help -h --quiet -q --color='
  [convert]=' --output= -o --force -f --pid= -p --strict --window= --level= -l --no-timestamps --help -h --quiet -q --color='
  [slice]=' --output= -o --force -f --from= --to= --threads= -t --rebase --level= -l --help -h --quiet -q --color='
  [anonymize]=' --output= -o --force -f --times= --round-sizes --keep-stacks --level= -l --help -h --quiet -q --color='
  [merge]=' --output= -o --force -f --offset= --level= -l --help -h --quiet -q --color='
  [replay]=' --allocator= -a --verify --fragmentation --runs= -r --touch= --threads= --speed= --idle= --timeout= --internal-fragmentation --stats-every= --trim-every= --no-latency --memory= --no-cache --json --help -h --quiet -q --color='
  [compare]=' --allocator= -a --sweep= --output= -o --force -f --real --runs= -r --touch= --threads= --speed= --idle= --timeout= --internal-fragmentation --stats-every= --trim-every= --no-latency --memory= --no-cache --json --help -h --quiet -q --color='
  [advise]=' --allocator= -a --budget= -b --rank= --speed= --idle= --timeout= --json --help -h --quiet -q --color='
  [stat]=' --json --brief --by= --format= --weight= --from= --to= --rss --at= --top= --debug-dir= --help -h --quiet -q --color='
  [symbolize]=' --output= -o --force -f --debug-dir= --help -h --quiet -q --color='
  [diff]=' --fail-on= --json --junit= --markdown= --top= --help -h --quiet -q --color='
  [report]=' --output= -o --force -f --open --diff -d --help -h --quiet -q --color='
  [dump]=' --format= -F --pid= -p --kind= -k --help -h --quiet -q --color='
  [import]=' --format= -F --output= -o --force -f --pid= -p --trace --keep-going -k --strict --level= -l --no-timestamps --list --help -h --quiet -q --color='
  [export]=' --format= -F --output= -o --force -f --pid= -p --no-timestamps --list --help -h --quiet -q --color='
  [check]=' --salvage --output= -o --force -f --help -h --quiet -q --color='
  [trace_run]=' --allocator= -a --touch= --timeout= --help -h --quiet -q --color='
  [allocators]=' --json --help -h --quiet -q --color='
)
# What stands for the value: a kind of thing, or words parted by '|'.
declare -gA _heaptape_values=(
  ['record --output']='FILE|-'
  ['record -o']='FILE|-'
  ['record --format']='mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|ctf|c|json'
  ['record -F']='mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|ctf|c|json'
  ['record --log-fd']='FD'
  ['record --allocator']='ALLOCATOR'
  ['record -a']='ALLOCATOR'
  ['record --compress']='none|lz4|zstd[:LEVEL]'
  ['record -z']='none|lz4|zstd[:LEVEL]'
  ['record --start']='now|paused'
  ['record --follow']='all|none|PATTERN'
  ['record --stacks']='DEPTH|sample[:BYTES]'
  ['record --max-size']='SIZE'
  ['record --collect']='DIR'
  ['record --pid']='PID'
  ['record -p']='PID'
  ['record --duration']='SECONDS'
  ['record --wrap']='NAME=FUNCTION[,...]'
  ['record --color']='auto|always|never'
  ['ctl --color']='auto|always|never'
  ['top --iterations']='N'
  ['top -n']='N'
  ['top --interval']='MS'
  ['top -d']='MS'
  ['top --by']='site|size|thread'
  ['top --sort']='live|blocks|growth|allocs|bytes'
  ['top --top']='N'
  ['top --pid']='PID'
  ['top -p']='PID'
  ['top --color']='auto|always|never'
  ['convert --output']='FILE|-'
  ['convert -o']='FILE|-'
  ['convert --pid']='PID|all'
  ['convert -p']='PID|all'
  ['convert --window']='NS'
  ['convert --level']='N'
  ['convert -l']='N'
  ['convert --color']='auto|always|never'
  ['slice --output']='FILE|-'
  ['slice -o']='FILE|-'
  ['slice --from']='POINT'
  ['slice --to']='POINT'
  ['slice --threads']='LIST'
  ['slice -t']='LIST'
  ['slice --level']='N'
  ['slice -l']='N'
  ['slice --color']='auto|always|never'
  ['anonymize --output']='FILE|-'
  ['anonymize -o']='FILE|-'
  ['anonymize --times']='TIME'
  ['anonymize --level']='N'
  ['anonymize -l']='N'
  ['anonymize --color']='auto|always|never'
  ['merge --output']='FILE|-'
  ['merge -o']='FILE|-'
  ['merge --offset']='TIME'
  ['merge --level']='N'
  ['merge -l']='N'
  ['merge --color']='auto|always|never'
  ['replay --allocator']='ALLOCATOR'
  ['replay -a']='ALLOCATOR'
  ['replay --runs']='N'
  ['replay -r']='N'
  ['replay --touch']='page|none|all'
  ['replay --threads']='auto|real|coupled|one'
  ['replay --speed']='max|recorded|xN'
  ['replay --idle']='SECONDS'
  ['replay --timeout']='SECONDS'
  ['replay --stats-every']='N'
  ['replay --trim-every']='N'
  ['replay --memory']='SIZE'
  ['replay --color']='auto|always|never'
  ['compare --allocator']='ALLOCATOR'
  ['compare -a']='ALLOCATOR'
  ['compare --sweep']='VARIABLE=VALUE,VALUE...'
  ['compare --output']='FILE'
  ['compare -o']='FILE'
  ['compare --runs']='N'
  ['compare -r']='N'
  ['compare --touch']='page|none|all'
  ['compare --threads']='auto|real|coupled|one'
  ['compare --speed']='max|recorded|xN'
  ['compare --idle']='SECONDS'
  ['compare --timeout']='SECONDS'
  ['compare --stats-every']='N'
  ['compare --trim-every']='N'
  ['compare --memory']='SIZE'
  ['compare --color']='auto|always|never'
  ['advise --allocator']='ALLOCATOR'
  ['advise -a']='ALLOCATOR'
  ['advise --budget']='SECONDS'
  ['advise -b']='SECONDS'
  ['advise --rank']='cpu|peak|mean|end|idle'
  ['advise --speed']='max|recorded|xN'
  ['advise --idle']='SECONDS'
  ['advise --timeout']='SECONDS'
  ['advise --color']='auto|always|never'
  ['stat --by']='site'
  ['stat --format']='text|json|folded|pprof|speedscope|firefox'
  ['stat --weight']='peak|end|bytes|allocs|growth|span'
  ['stat --from']='POINT'
  ['stat --to']='POINT'
  ['stat --at']='peak|end|POINT'
  ['stat --top']='N'
  ['stat --debug-dir']='DIR[:DIR...]'
  ['stat --color']='auto|always|never'
  ['symbolize --output']='FILE'
  ['symbolize -o']='FILE'
  ['symbolize --debug-dir']='DIR[:DIR...]'
  ['symbolize --color']='auto|always|never'
  ['diff --fail-on']='LIMIT'
  ['diff --junit']='FILE'
  ['diff --markdown']='FILE'
  ['diff --top']='N'
  ['diff --color']='auto|always|never'
  ['report --output']='REPORT'
  ['report -o']='REPORT'
  ['report --color']='auto|always|never'
  ['dump --format']='text|json'
  ['dump -F']='text|json'
  ['dump --pid']='PID'
  ['dump -p']='PID'
  ['dump --kind']='KIND'
  ['dump -k']='KIND'
  ['dump --color']='auto|always|never'
  ['import --format']='mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|json'
  ['import -F']='mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|json'
  ['import --output']='FILE|-'
  ['import -o']='FILE|-'
  ['import --pid']='PID|all'
  ['import -p']='PID|all'
  ['import --level']='N'
  ['import -l']='N'
  ['import --color']='auto|always|never'
  ['export --format']='mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|ctf|c|json'
  ['export -F']='mtrace|wl|tcmalloc|tcmalloc-replay|logalloc|logalloc-munged|android|ctf|c|json'
  ['export --output']='FILE|-'
  ['export -o']='FILE|-'
  ['export --pid']='PID'
  ['export -p']='PID'
  ['export --color']='auto|always|never'
  ['check --output']='FILE|-'
  ['check -o']='FILE|-'
  ['check --color']='auto|always|never'
  ['trace_run --allocator']='ALLOCATOR'
  ['trace_run -a']='ALLOCATOR'
  ['trace_run --touch']='page|none|all'
  ['trace_run --timeout']='SECONDS'
  ['trace_run --color']='auto|always|never'
  ['allocators --color']='auto|always|never'
)
# Below this line by hand; above it by tools/generate.

# What may stand for the value `kind` of an option.
_heaptape_value() {
  local kind=$1 current=$2
  case $kind in
    *'|'*) mapfile -t COMPREPLY < <(compgen -W "${kind//|/ }" -- "$current") ;;
    ALLOCATOR*)
      local names
      names=$(heaptape allocators 2>/dev/null | awk '{ print $1 }')
      mapfile -t COMPREPLY < <(compgen -W "$names" -- "$current"; compgen -f -- "$current")
      ;;
    DIR*) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    *FILE* | *HTML*) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
  esac
}

_heaptape() {
  local current previous command=${COMP_WORDS[1]}
  COMPREPLY=()
  # Bash parts --name=value into three words.
  current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  if [ "$previous" = = ]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  elif [ "$current" = = ]; then
    previous=${COMP_WORDS[COMP_CWORD - 1]} current=''
  fi
  if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$command" = help ]; }; then
    mapfile -t COMPREPLY < <(compgen -W "${!_heaptape_options[*]} help --help --version" -- "$current")
  elif [ -n "${_heaptape_values["$command $previous"]:-}" ]; then
    _heaptape_value "${_heaptape_values["$command $previous"]}" "$current"
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${_heaptape_options[$command]:-}" -- "$current")
    [[ ${COMPREPLY[0]:-} == *= ]] && compopt -o nospace
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -o filenames -F _heaptape heaptape
