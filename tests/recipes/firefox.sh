# firefox without a display: a screenshot of a page.
programs=firefox-esr
packages=firefox-esr
licence=MPL-2.0
varies='profile/* err out *.png'
# mozjemalloc is in the executable. It lacks the sized delete, which libraries then find in
# libheaptape.so.
# Some children are forked without the wrapped fork, at an unknown time.
strict=no
says='calls its own malloc|% was not recorded|other processes have calls that were not recorded'

run() {
  cat >page.html <<'END'
<html><body><p id="p"></p><script>
let s = 0;
for (let i = 0; i < 100000; i++) s += i % 7;
document.getElementById("p").textContent = "sum " + s;
</script></body></html>
END
  mkdir profile
  record firefox-esr --headless --no-remote --profile "$PWD/profile" \
    --screenshot "$PWD/page.png" "file://$PWD/page.html"
}
