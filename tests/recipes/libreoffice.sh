# LibreOffice Calc without a display: a table becomes a PDF.
programs=soffice
packages=libreoffice-calc
licence=MPL-2.0
varies='*.pdf err'

run() {
  perl -e 'print join(",", map { $_[0] * $_ } 1 .. 8), "\n" for 1; print join(",", "row $_", map { $_ * 7 % 101 } 1 .. 9), "\n" for 1 .. shift' "$(part 3000)" >input.csv
  record soffice --headless --norestore --convert-to ods --outdir . input.csv
}
