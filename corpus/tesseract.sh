# tesseract: a page of text, drawn by Ghostscript, is recognized by OpenMP threads.
programs='tesseract gs /usr/share/doc/tesseract-ocr-eng'
packages='tesseract-ocr tesseract-ocr-eng ghostscript'
licence=Apache-2.0

run() {
  echo '/Times-Roman findfont 20 scalefont setfont
    40 700 moveto (the quick brown fox jumps over the lazy dog) show
    40 660 moveto (and the mallocs of many threads are recorded) show showpage' >page.ps
  gs -q -dBATCH -dNOPAUSE -sDEVICE=pgmraw -r100 -sOutputFile=input.pgm page.ps
  OMP_THREAD_LIMIT=2 record tesseract input.pgm - 2>&1
}
