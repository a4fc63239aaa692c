# CPython with malloc instead of its own allocator: JSON, objects, a sort, regular expressions.
programs=python3.11
packages=python3.11
licence=PSF-2.0

run() {
  cat >input.py <<'END'
import collections, json, random, re, sys

class Node:
    def __init__(self, key, children):
        self.key, self.children = key, children

random.seed(1)
n = int(sys.argv[1])
for turn in range(4):
    rows = [{"id": i, "name": f"name-{random.getrandbits(32):x}", "tags": [str(i % k) for k in (3, 7, 31)]} for i in range(n)]
    rows = json.loads(json.dumps(rows))
    rows.sort(key=lambda row: row["name"])
    words = collections.Counter(w for row in rows for w in re.findall(r"[a-f]+|\d", row["name"]))
    tree = [Node(row["name"], []) for row in rows]
    for i in range(1, n):
        tree[random.randrange(i)].children.append(tree[i])
    print(len(words), max(len(node.children) for node in tree))
END
  PYTHONMALLOC=malloc PYTHONHASHSEED=0 record python3.11 input.py $((30000 * size / 100 + 10))
}
