# groonga: a table and its full-text index.
programs=groonga
packages=groonga-bin
licence=LGPL-2.1-only
varies='db* out' # times

run() {
  {
    echo 'table_create T TABLE_NO_KEY'
    echo 'column_create T c COLUMN_SCALAR Text'
    echo 'table_create L TABLE_PAT_KEY ShortText --default_tokenizer TokenBigram --normalizer NormalizerAuto'
    echo 'column_create L i COLUMN_INDEX|WITH_POSITION T c'
    echo 'load --table T'
    echo '['
    text "$(part 2000)" | sed 's/.*/{"c": "&"},/'
    echo ']'
    echo 'select T --match_columns c --query a --limit 3'
  } >input
  record groonga --file input -n db
}
