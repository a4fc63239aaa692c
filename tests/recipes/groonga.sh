# groonga: a table and its full-text index.
programs=groonga
packages=groonga-bin
licence=LGPL-2.1-only
varies='db* out' # times

run() {
  {
    cat <<'END'
table_create T TABLE_NO_KEY
column_create T c COLUMN_SCALAR Text
table_create L TABLE_PAT_KEY ShortText --default_tokenizer TokenBigram --normalizer NormalizerAuto
column_create L i COLUMN_INDEX|WITH_POSITION T c
load --table T
[
END
    text "$(part 2000)" | sed 's/.*/{"c": "&"},/'
    printf ']\nselect T --match_columns c --query a --limit 3\n'
  } >input
  record groonga --file input -n db
}
