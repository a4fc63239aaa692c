"""same_answers.py [N...]: compares the answers got.N (CSV of heaptape sql) with duck.N (DuckDB), by
default all. Rows with equal sort keys may be in any order. Queries 6 and 8 have a LIMIT and may return
different rows, so only their numbers are compared. Exits with 1 at the first difference."""
import csv
import glob
import json
import sys


def same(row):
    values = ["" if v is None else str(v) for v in row]
    return [round(float(v), 6) if v.replace(".", "", 1).replace("e-", "").isdigit() else v for v in values]


for i in map(int, sys.argv[1:] or [name[5:] for name in glob.glob("duck.*")]):
    wanted = [same(row) for row in list(csv.reader(open(f"got.{i}")))[1:]]
    found = [same(row) for row in json.load(open(f"duck.{i}"))]
    column = {6: 3, 8: 4}.get(i)
    if column is not None:
        wanted, found = ([row[column] for row in rows] for rows in (wanted, found))
    if sorted(map(str, wanted)) != sorted(map(str, found)):
        sys.exit(f"query {i}: {wanted[:3]} … and {found[:3]} …")
