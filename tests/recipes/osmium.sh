# osmium: sorts and compresses a map by its pool of threads.
programs=osmium
packages=osmium-tool
licence=GPL-3.0-or-later

run() {
  perl -e 'print "<?xml version=\"1.0\"?><osm version=\"0.6\">\n"; my $n = shift; for (1 .. $n) { my $i = $_ * 7919 % 999983;
    printf "<node id=\"$i\" version=\"1\" lat=\"%.5f\" lon=\"%.5f\"><tag k=\"name\" v=\"node $_\"/></node>\n", $_ % 80, $_ % 170 } print "</osm>\n"' "$(part 300000)" >input.osm
  record osmium sort --no-progress -f pbf,add_metadata=false -o output.osm.pbf --generator=g input.osm
}
