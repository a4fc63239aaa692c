# indexer of Sphinx: a full-text index of XML.
programs=indexer
packages=sphinxsearch
licence=GPL-2.0-only
varies='out i.*'

run() {
  {
    echo '<?xml version="1.0" encoding="utf-8"?><sphinx:docset><sphinx:schema><sphinx:field name="t"/></sphinx:schema>'
    text "$(part 10000)" | perl -ne 'chomp; print "<sphinx:document id=\"$.\"><t>$_</t></sphinx:document>\n"'
    echo '</sphinx:docset>'
  } >input.xml
  printf 'source s {\n type = xmlpipe2\n xmlpipe_command = cat %s/input.xml\n}\nindex i {\n source = s\n path = %s/i\n}\nindexer {\n mem_limit = 16M\n}\n' \
    "$PWD" "$PWD" >sphinx.conf
  record indexer --config sphinx.conf --quiet i
}
