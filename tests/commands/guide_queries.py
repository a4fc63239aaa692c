"""Writes the queries of docs/guide/sql.md, each as a shell command query.N, from 1 on, and its SQL as sql.N; what follows the ten
is 11 and so on. Prints how many there are. guide_queries.py PAGE"""
import re
import sys

blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", open(sys.argv[1]).read(), re.M)
found = [b for b in blocks if re.match(r"\s*heaptape sql (app|old).ht", b) and '"' in b]
for i, block in enumerate(found, 1):
    open(f"query.{i}", "w").write(block.replace("heaptape sql", '"$HEAPTAPE" sql --csv', 1))
    open(f"sql.{i}", "w").write(block.split('"')[1])
print(len(found))
