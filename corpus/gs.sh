# Ghostscript: generated pages with text, paths and shades, drawn as an image and written as PDF.
programs='gs awk'
packages=ghostscript
licence=AGPL-3.0-or-later
varies=input.pdf

run() {
  awk -v n=$((12 * size / 100 + 1)) 'BEGIN {
    print "%!PS"
    for (p = 0; p < n; p++) {
      printf "/Times-Roman findfont %d scalefont setfont\n", p % 5 + 7
      for (y = 40; y < 760; y += 12)
        printf "40 %d moveto (page %d, line %d: the quick brown fox jumps over the lazy dog %d) show\n", y, p, y, p * y
      for (i = 0; i < 400; i++)
        printf "gsave %.2f %.2f %.2f setrgbcolor %d %d translate %d rotate 0 0 moveto 30 40 60 %d 90 0 curveto closepath fill grestore\n", \
          i % 7 / 7, i % 11 / 11, i % 13 / 13, i * 37 % 560, i * 91 % 760, i * 17 % 360, i % 80
      print "<< /ShadingType 2 /ColorSpace /DeviceRGB /Coords [0 0 600 800] /Function << /FunctionType 2 /Domain [0 1]"
      print "/C0 [1 0 0] /C1 [0 0 1] /N 1 >> >> pop showpage"
    }
  }' >input.ps
  gs -q -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -sOutputFile=input.pdf input.ps
  record gs -q -dBATCH -dNOPAUSE -sDEVICE=png16m -r100 -dTextAlphaBits=4 -sOutputFile=page%d.png input.pdf
}
