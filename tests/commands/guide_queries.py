"""guide_queries.py PAGE: writes each query of docs/guide/sql.md as a shell command query.N and its SQL
as sql.N, with N from 1 on. Queries after the list of ten start at 11. Prints the number of queries."""
import re
import sys

blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", open(sys.argv[1]).read(), re.M)
found = [b for b in blocks if re.match(r"\s*heaptape sql (app|old).ht", b) and '"' in b]
for i, block in enumerate(found, 1):
    open(f"query.{i}", "w").write(block.replace("heaptape sql", '"$HEAPTAPE" sql --csv', 1))
    open(f"sql.{i}", "w").write(block.split('"')[1])
print(len(found))
