# tclsh: lists, dictionaries and strings.
programs=tclsh
packages=tcl
licence=TCL

run() {
  cat >main.tcl <<END
for {set i 0} {\$i < $(part 300000)} {incr i} {
  dict lappend d k[expr {\$i % 999}] [string repeat x [expr {\$i % 50}]]
}
puts "[dict size \$d] [string length \$d]"
puts [llength [lsort [split \$d]]]
END
  record tclsh main.tcl
}
