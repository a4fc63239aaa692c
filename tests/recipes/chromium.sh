# chromium without a display: prints the document made by a page's script.
programs=chromium
packages=chromium
licence=BSD-3-Clause
varies='profile/* err'
# PartitionAlloc is in the executable. Some of its functions have no symbol, for example
# UncheckedCalloc and the realloc of Rust, so some frees have no recorded allocation.
strict=no
says='calls its own malloc|% was not recorded|other processes have calls that were not recorded'

run() {
  cat >page.html <<'END'
<html><body><p id="p"></p><script>
let s = 0;
for (let i = 0; i < 100000; i++) s += i % 7;
document.getElementById("p").textContent = "sum " + s;
for (let i = 0; i < 500; i++) document.body.append(document.createElement("b"));
</script></body></html>
END
  record chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" \
    --dump-dom "file://$PWD/page.html"
}
