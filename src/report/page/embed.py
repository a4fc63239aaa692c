#!/usr/bin/python3
"""embed.py OUT.c PAGE.html STYLE.css... SCRIPT.js...: writes the page with its styles and scripts as C arrays.

PAGE.html has the markers @POLICY@ (in a meta element), @STYLE@, @SCRIPTS@ and @DATA@; @DATA@ splits the page into
two arrays. Styles and libraries get one element each. Libraries are the scripts outside the directory of PAGE.html and
come first. Heaptape's own scripts are joined into one element, because they share their names. The policy allows
these elements only, by their SHA-256.
"""
import base64
import hashlib
import os
import sys


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def source(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def own_script(texts):
    return "(() => {\n'use strict';\n" + "\n".join(texts) + "})();\n"


def array(name, text):
    data = text.encode()
    rows = (",".join(map(str, data[i:i + 32])) for i in range(0, len(data), 32))
    return f"const unsigned char {name}[] = {{\n" + ",\n".join(rows) + f"\n}};\nconst size_t {name}_bytes = sizeof {name};\n"


def main():
    out, page, *files = sys.argv[1:]
    folder = os.path.dirname(os.path.abspath(page))
    styles = [read(f) for f in files if f.endswith(".css")]
    scripts = [f for f in files if f.endswith(".js")]
    own = [f for f in scripts if os.path.dirname(os.path.abspath(f)) == folder]
    texts = [read(f) for f in scripts if f not in own] + [own_script([read(f) for f in own])]
    # Browsers would fetch the source map.
    texts = ["\n".join(l for l in t.split("\n") if not l.startswith("//# sourceMappingURL")) for t in texts]
    for text in styles + texts:
        if "</script" in text.lower() or "</style" in text.lower():
            sys.exit("embed.py: a style or script holds its own end")
    policy = ("default-src 'none'; style-src " + " ".join(map(source, styles)) + "; script-src "
              + " ".join(map(source, texts)) + "; base-uri 'none'; form-action 'none'")
    html = read(page).replace("@POLICY@", policy)
    html = html.replace("@STYLE@", "".join(f"<style>{t}</style>\n" for t in styles))
    head, tail = html.split("@DATA@")
    tail = tail.replace("@SCRIPTS@", "".join(f"<script>{t}</script>\n" for t in texts))
    with open(out, "w", encoding="ascii") as f:
        f.write('#include "report/page/page.h"\n\n' + array("page_head", head) + array("page_tail", tail))


main()
