# LibreOffice Calc without a display: reads a table and writes it in its own format.
programs=soffice
packages=libreoffice-calc
licence=MPL-2.0
varies='*.ods err'

run() {
  perl -e 'print join(",", "row $_", map { $_ * 7 % 101 } 1 .. 9), "\n" for 1 .. shift' \
    "$(part 3000)" >input.csv
  record soffice --headless --norestore --convert-to ods --outdir . input.csv
}
