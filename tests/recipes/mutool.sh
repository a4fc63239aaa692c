# mutool: draws the bands of a page by two threads.
programs='mutool gs'
packages='mupdf-tools ghostscript'
licence=AGPL-3.0-or-later
varies=input.pdf # the time

run() {
  perl -e 'print "%!PS\n/Times-Roman findfont 9 scalefont setfont\n";
    for (1 .. shift) {
      print $_ * 37 % 500, " ", $_ * 91 % 700, " moveto (word $_) show\n";
      print "0.", $_ % 9, " setgray ", $_ * 53 % 550, " ", $_ * 17 % 750, " 20 0 270 arc fill\n";
    }
    print "showpage\n"' "$(part 10000)" >page.ps
  gs -q -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -sOutputFile=input.pdf page.ps
  record mutool draw -q -B 64 -T 2 -r 150 -o output.pam input.pdf
}
