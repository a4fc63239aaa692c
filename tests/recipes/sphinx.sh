# indexer of Sphinx: a full-text index of XML.
programs=indexer
packages=sphinxsearch
licence=GPL-2.0-only
varies='out i.*'

run() {
  {
    echo '<?xml version="1.0" encoding="utf-8"?>'
    echo '<sphinx:docset><sphinx:schema><sphinx:field name="t"/></sphinx:schema>'
    text "$(part 10000)" | sed '=' |
      sed 'N; s/\(.*\)\n\(.*\)/<sphinx:document id="\1"><t>\2<\/t><\/sphinx:document>/'
    echo '</sphinx:docset>'
  } >input.xml
  cat >sphinx.conf <<END
source s {
  type = xmlpipe2
  xmlpipe_command = cat $PWD/input.xml
}
index i {
  source = s
  path = $PWD/i
}
indexer {
  mem_limit = 32M
}
END
  record indexer --config sphinx.conf --quiet i
}
