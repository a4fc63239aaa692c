# wkhtmltopdf: a page with a script, by WebKit.
programs=wkhtmltopdf
packages=wkhtmltopdf
licence=LGPL-3.0-only
varies='*.pdf err'

run() {
  cat >page.html <<'END'
<html><body><p id="p"></p><script>
var s = "";
for (var i = 0; i < 2000; i++) s += i + " ";
document.getElementById("p").innerHTML = s;
</script></body></html>
END
  QT_QPA_PLATFORM=offscreen record wkhtmltopdf -q page.html page.pdf
}
