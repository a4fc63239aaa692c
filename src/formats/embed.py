#!/usr/bin/python3
"""embed.py OUT.c NAME FILE: the text of a file as the string NAME, a row a line."""
import sys

out, name, path = sys.argv[1:]
with open(path, encoding="ascii") as f:
    rows = ['    "' + line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"\n' for line in f]
with open(out, "w", encoding="ascii") as f:
    f.write(f"extern const char {name}[];\nconst char {name}[] =\n" + "".join(rows) + ";\n")
