# osmium: sorts and compresses a map by its pool of threads.
programs=osmium
packages=osmium-tool
licence=GPL-3.0-or-later

run() {
  {
    echo '<?xml version="1.0"?><osm version="0.6">'
    perl -e 'for (1 .. shift) {
        printf "<node id=\"%d\" version=\"1\" lat=\"%.5f\" lon=\"%.5f\">",
          $_ * 7919 % 999983, $_ % 80, $_ % 170;
        print "<tag k=\"name\" v=\"node $_\"/></node>\n";
      }' "$(part 300000)"
    echo '</osm>'
  } >input.osm
  record osmium sort --no-progress -f pbf,add_metadata=false --generator=g \
    -o output.osm.pbf input.osm
}
