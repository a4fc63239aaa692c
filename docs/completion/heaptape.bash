declare -gA _heaptape_options=(
  [record]=' --output= -o --format= -F --log-fd= --force -f --compress= -z --max-size= --start= --follow= --allocator= -a --stacks= --usable --maps --no-residency --no-pages --lossy --aggregate= --period= --flight= --trigger= --on-dump= --segment= --on-segment= --keep= --spool= --spool-limit= --upload-wait= --upload-timeout= --upload-token-file= --s3= --pid= -p --duration= --walk --wrap= --collect= --verbose -v --help -h --quiet -q --color='
  [stat]=' --json --brief --by= --format= --weight= --from= --to= --rss --at= --top= --wrappers --debug-dir= --help -h --quiet -q --color='
  [top]=' --batch -b --iterations= -n --interval= -d --by= --sort= --top= --pid= -p --help -h --quiet -q --color='
  [report]=' --output= -o --force -f --open --diff -d --pool --across-machines --help -h --quiet -q --color='
  [compare]=' --allocator= -a --sweep= --output= -o --force -f --real --runs= -r --touch= --threads= --speed= --idle= --cpus= --timeout= --internal-fragmentation --stats-every= --trim-every= --no-latency --memory= --no-cache --json --help -h --quiet -q --color='
  [advise]=' --allocator= -a --budget= -b --rank= --speed= --idle= --timeout= --json --help -h --quiet -q --color='
  [ctl]=' --json --help -h --quiet -q --color='
  [check]=' --salvage --output= -o --force -f --help -h --quiet -q --color='
  [symbolize]=' --output= -o --force -f --debug-dir= --help -h --quiet -q --color='
  [corpus]=' --dir= -d --install --size= --json --allocator= -a --runs= -r --results= --engine= --engine-option= --retry --help -h --quiet -q --color='
  [diff]=' --fail-on= --json --junit= --markdown= --top= --help -h --quiet -q --color='
  [dump]=' --format= -F --pid= -p --kind= -k --help -h --quiet -q --color='
  [sql]=' --json --csv --csv-safe --max-memory= --timeout= --tables --help -h --quiet -q --color='
  [replay]=' --allocator= -a --verify --fragmentation --runs= -r --touch= --threads= --speed= --idle= --cpus= --timeout= --internal-fragmentation --stats-every= --trim-every= --no-latency --memory= --no-cache --json --help -h --quiet -q --color='
  [allocators]=' --json --help -h --quiet -q --color='
  [reduce]=' --output= -o --force -f --keep= -k --keep-cmd= --allocator= -a --budget= -b --runs= -r --jobs= -j --floor= --timeout= --help -h --quiet -q --color='
  [matrix]=' --workload= -w --allocator= -a --sweep= --runs= -r --replay-option= --engine= --engine-option= --retry --across-machines --job= --help -h --quiet -q --color='
  [import]=' --format= -F --output= -o --force -f --pid= -p --trace --keep-going -k --strict --level= -l --no-timestamps --list --help -h --quiet -q --color='
  [export]=' --format= -F --table= -t --partition --csv-safe --output= -o --force -f --pid= -p --no-timestamps --list --help -h --quiet -q --color='
  [anonymize]=' --output= -o --force -f --times= --round-sizes --keep-stacks --level= -l --help -h --quiet -q --color='
  [trace_run]=' --allocator= -a --touch= --timeout= --help -h --quiet -q --color='
  [upload]=' --token-file= --s3= --timeout= --wait= --verbose -v --help -h --quiet -q --color='
  [receive]=' --listen= --dir= --token-file= --certificate= --key= --max-size= --verbose -v --help -h --quiet -q --color='
  [convert]=' --output= -o --force -f --pid= -p --strict --window= --level= -l --no-timestamps --help -h --quiet -q --color='
  [slice]=' --output= -o --force -f --from= --to= --threads= -t --rebase --level= -l --help -h --quiet -q --color='
  [merge]=' --output= -o --force -f --offset= --level= -l --help -h --quiet -q --color='
)
# Values of options: words, or @ and a kind of value.
declare -gA _heaptape_values=(
  ['record --output']='@files'
  ['record -o']='@files'
  ['record --format']='mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android ctf c json'
  ['record -F']='mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android ctf c json'
  ['record --log-fd']=''
  ['record --compress']='none lz4 zstd'
  ['record -z']='none lz4 zstd'
  ['record --max-size']=''
  ['record --start']='now paused'
  ['record --follow']='all none'
  ['record --allocator']='@allocators'
  ['record -a']='@allocators'
  ['record --stacks=']='sample'
  ['record --aggregate=']=''
  ['record --period']=''
  ['record --flight']=''
  ['record --trigger']=''
  ['record --on-dump']=''
  ['record --segment']=''
  ['record --on-segment']=''
  ['record --keep']=''
  ['record --spool']='@folders'
  ['record --spool-limit']=''
  ['record --upload-wait']=''
  ['record --upload-timeout']=''
  ['record --upload-token-file']='@files'
  ['record --s3=']=''
  ['record --pid']='@processes'
  ['record -p']='@processes'
  ['record --duration']=''
  ['record --wrap']=''
  ['record --collect']='@folders'
  ['record --color']='auto always never'
  ['stat --by']='site pool'
  ['stat --format']='text json folded pprof speedscope firefox'
  ['stat --weight']='peak end bytes allocs growth span'
  ['stat --from']=''
  ['stat --to']=''
  ['stat --at']='peak end'
  ['stat --top']=''
  ['stat --debug-dir']='@folders'
  ['stat --color']='auto always never'
  ['top --iterations']=''
  ['top -n']=''
  ['top --interval']=''
  ['top -d']=''
  ['top --by']='site size thread'
  ['top --sort']='live blocks growth allocs bytes'
  ['top --top']=''
  ['top --pid']='@processes'
  ['top -p']='@processes'
  ['top --color']='auto always never'
  ['report --output']='@files'
  ['report -o']='@files'
  ['report --color']='auto always never'
  ['compare --allocator']='@allocators'
  ['compare -a']='@allocators'
  ['compare --sweep']=''
  ['compare --output']='@files'
  ['compare -o']='@files'
  ['compare --runs']=''
  ['compare -r']=''
  ['compare --touch']='page none all'
  ['compare --threads']='auto real coupled one'
  ['compare --speed']='max recorded'
  ['compare --idle']=''
  ['compare --cpus']=''
  ['compare --timeout']=''
  ['compare --stats-every']=''
  ['compare --trim-every']=''
  ['compare --memory']=''
  ['compare --color']='auto always never'
  ['advise --allocator']='@allocators'
  ['advise -a']='@allocators'
  ['advise --budget']=''
  ['advise -b']=''
  ['advise --rank']='cpu peak mean end idle'
  ['advise --speed']='max recorded'
  ['advise --idle']=''
  ['advise --timeout']=''
  ['advise --color']='auto always never'
  ['ctl --color']='auto always never'
  ['check --output']='@files'
  ['check -o']='@files'
  ['check --color']='auto always never'
  ['symbolize --output']='@files'
  ['symbolize -o']='@files'
  ['symbolize --debug-dir']='@folders'
  ['symbolize --color']='auto always never'
  ['corpus --dir']='@folders'
  ['corpus -d']='@folders'
  ['corpus --size']=''
  ['corpus --allocator']='@allocators'
  ['corpus -a']='@allocators'
  ['corpus --runs']=''
  ['corpus -r']=''
  ['corpus --results']='@folders'
  ['corpus --engine']='local parallel slurm'
  ['corpus --engine-option']=''
  ['corpus --color']='auto always never'
  ['diff --fail-on']=''
  ['diff --junit']='@files'
  ['diff --markdown']='@files'
  ['diff --top']=''
  ['diff --color']='auto always never'
  ['dump --format']='text json'
  ['dump -F']='text json'
  ['dump --pid']='@processes'
  ['dump -p']='@processes'
  ['dump --kind']=''
  ['dump -k']=''
  ['dump --color']='auto always never'
  ['sql --max-memory']=''
  ['sql --timeout']=''
  ['sql --color']='auto always never'
  ['replay --allocator']='@allocators'
  ['replay -a']='@allocators'
  ['replay --runs']=''
  ['replay -r']=''
  ['replay --touch']='page none all'
  ['replay --threads']='auto real coupled one'
  ['replay --speed']='max recorded'
  ['replay --idle']=''
  ['replay --cpus']=''
  ['replay --timeout']=''
  ['replay --stats-every']=''
  ['replay --trim-every']=''
  ['replay --memory']=''
  ['replay --color']='auto always never'
  ['allocators --color']='auto always never'
  ['reduce --output']='@files'
  ['reduce -o']='@files'
  ['reduce --keep']=''
  ['reduce -k']=''
  ['reduce --keep-cmd']=''
  ['reduce --allocator']='@allocators'
  ['reduce -a']='@allocators'
  ['reduce --budget']=''
  ['reduce -b']=''
  ['reduce --runs']=''
  ['reduce -r']=''
  ['reduce --jobs']=''
  ['reduce -j']=''
  ['reduce --floor']=''
  ['reduce --timeout']=''
  ['reduce --color']='auto always never'
  ['matrix --workload']='@files'
  ['matrix -w']='@files'
  ['matrix --allocator']='@allocators'
  ['matrix -a']='@allocators'
  ['matrix --sweep']=''
  ['matrix --runs']=''
  ['matrix -r']=''
  ['matrix --replay-option']=''
  ['matrix --engine']='local parallel slurm'
  ['matrix --engine-option']=''
  ['matrix --job']=''
  ['matrix --color']='auto always never'
  ['import --format']='mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android heaptrack mallocbench json'
  ['import -F']='mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android heaptrack mallocbench json'
  ['import --output']='@files'
  ['import -o']='@files'
  ['import --pid']='@processes all'
  ['import -p']='@processes all'
  ['import --level']=''
  ['import -l']=''
  ['import --color']='auto always never'
  ['export --format']='mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android ctf c json csv parquet'
  ['export -F']='mtrace wl tcmalloc tcmalloc-replay logalloc logalloc-munged android ctf c json csv parquet'
  ['export --table']='events blocks sites processes samples'
  ['export -t']='events blocks sites processes samples'
  ['export --output']='@files'
  ['export -o']='@files'
  ['export --pid']='@processes'
  ['export -p']='@processes'
  ['export --color']='auto always never'
  ['anonymize --output']='@files'
  ['anonymize -o']='@files'
  ['anonymize --times']=''
  ['anonymize --level']=''
  ['anonymize -l']=''
  ['anonymize --color']='auto always never'
  ['trace_run --allocator']='@allocators'
  ['trace_run -a']='@allocators'
  ['trace_run --touch']='page none all'
  ['trace_run --timeout']=''
  ['trace_run --color']='auto always never'
  ['upload --token-file']='@files'
  ['upload --s3=']=''
  ['upload --timeout']=''
  ['upload --wait']=''
  ['upload --color']='auto always never'
  ['receive --listen']=''
  ['receive --dir']='@folders'
  ['receive --token-file']='@files'
  ['receive --certificate']='@files'
  ['receive --key']='@files'
  ['receive --max-size']=''
  ['receive --color']='auto always never'
  ['convert --output']='@files'
  ['convert -o']='@files'
  ['convert --pid']='@processes all'
  ['convert -p']='@processes all'
  ['convert --window']=''
  ['convert --level']=''
  ['convert -l']=''
  ['convert --color']='auto always never'
  ['slice --output']='@files'
  ['slice -o']='@files'
  ['slice --from']=''
  ['slice --to']=''
  ['slice --threads']=''
  ['slice -t']=''
  ['slice --level']=''
  ['slice -l']=''
  ['slice --color']='auto always never'
  ['merge --output']='@files'
  ['merge -o']='@files'
  ['merge --offset']=''
  ['merge --level']=''
  ['merge -l']=''
  ['merge --color']='auto always never'
)
# Values of operands.
declare -gA _heaptape_operands=(
  [record]='@programs'
  [stat]='@files'
  [top]='@processes @files'
  [report]='@files'
  [compare]='@files'
  [advise]='@files'
  [ctl]='@processes start stop pause resume sync reset status detach dump'
  [check]='@files'
  [symbolize]='@files'
  [corpus]='record list run'
  [diff]='@files'
  [dump]='@files'
  [sql]='@files'
  [replay]='@files'
  [allocators]=''
  [reduce]='@files'
  [matrix]='@folders'
  [import]='@files'
  [export]='@files'
  [anonymize]='@files'
  [trace_run]='@files'
  [upload]='@folders'
  [receive]='@folders'
  [convert]='@files'
  [slice]='@files'
  [merge]='@files'
)
# Below this line by hand; above it by tools/generate.

# _heaptape_words CURRENT WORD...: those words, and of each kind @KIND what there is, that begin with CURRENT.
_heaptape_words() {
  local current=$1 word
  shift
  for word; do
    case $word in
      @files) compgen -f -- "$current" ;;
      @folders) compgen -d -- "$current" ;;
      @allocators)
        compgen -W "$(heaptape allocators 2>/dev/null | awk '{ print $1 }')" -- "$current"
        compgen -f -- "$current"
        ;;
      @processes) compgen -W "$(cd /proc && echo [0-9]*)" -- "$current" ;;
      @programs) compgen -c -- "$current" ;;
      *) compgen -W "$word" -- "$current" ;;
    esac
  done
}

# Sets `program` to the number of words up to the first '--', or 0 if the current word precedes it.
_heaptape_find_program() {
  local i
  program=0
  for ((i = 1; i < COMP_CWORD; i++)); do
    [ "${COMP_WORDS[i]}" != -- ] || { program=$((i + 1)) && return; }
  done
}

_heaptape() {
  local current previous command=${COMP_WORDS[1]} program words
  COMPREPLY=()
  # Bash splits --name=value into three words.
  current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  if [ "$previous" = = ]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  elif [ "$current" = = ]; then
    previous=${COMP_WORDS[COMP_CWORD - 1]} current=''
  fi
  # An option whose value may be left out has one only after '='.
  if [ "${COMP_WORDS[COMP_CWORD]}" = = ] || [ "${COMP_WORDS[COMP_CWORD - 1]}" = = ]; then
    [ -z "${_heaptape_values["$command $previous="]+is}" ] || previous+='='
  fi
  _heaptape_find_program
  if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$command" = help ]; }; then
    words="${!_heaptape_options[*]} help --help --version"
  elif [ "$program" -gt 0 ]; then
    words=@files
    [ "$COMP_CWORD" -ne "$program" ] || words=@programs
  elif [ -n "${_heaptape_values["$command $previous"]+is}" ]; then
    words=${_heaptape_values["$command $previous"]}
  elif [[ $current == -* ]]; then
    words=${_heaptape_options[$command]:-}
  else
    words=${_heaptape_operands[$command]:-}
  fi
  read -ra words <<<"$words"
  mapfile -t COMPREPLY < <(_heaptape_words "$current" "${words[@]}")
  [[ ${COMPREPLY[0]:-} == *= ]] && compopt -o nospace
}
complete -o filenames -F _heaptape heaptape
