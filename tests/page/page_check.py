#!/usr/bin/python3
"""page_check.py PAGE.html [RESULTS.json]: opens the page in headless Chromium and checks its
contents.

No message on the console, no request, every chart painted, a name for every element, no wider
than a phone. Tables have the numbers of the page's data and, if given, of `compare --json`.
Exits with 77 without Chromium or Node.
"""
import json
import os
import re
import shutil
import subprocess
import sys

LOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "look.mjs")
wrong = []


def expect(what, ok, seen=""):
    if not ok:
        wrong.append(f"{what}: {seen}")


def browser():
    names = ["chromium", "chromium-browser", "google-chrome"]
    found = [shutil.which(name) for name in names if shutil.which(name)]
    if not found or not shutil.which("node"):
        print("no Chromium or no Node to open the page with")
        sys.exit(77)
    return found[0]


def look(page, *options):
    run = subprocess.run(["node", LOOK, browser(), page, *options], stdout=subprocess.PIPE, text=True)
    if run.returncode:
        print(run.stdout)
        sys.exit(f"the browser did not come to an end: status {run.returncode}")
    return json.loads(run.stdout)


def data_of(page):
    text = open(page, encoding="utf-8").read()
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))


def three_digits(v):
    size = abs(v)
    return f"{v:.{0 if size >= 99.95 or size == 0 else 1 if size >= 9.995 else 2}f}"


def scaled(v, step, units):
    unit = 0
    while abs(v) >= step * 0.9995 and unit < len(units) - 1:
        v /= step
        unit += 1
    return (str(int(v)) if v == int(v) else three_digits(v)) + " " + units[unit]


def bytes_text(v):
    return scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB"])


def ns_text(v):
    return scaled(v, 1000, ["ns", "µs", "ms", "s", "ks"])


def count_text(v):
    return re.sub(r"\B(?=(\d{3})+(?!\d))", " ", str(v))


def rows_of(seen, name, caption=""):
    """Returns the rows of a table as {column: text} with plain spaces."""
    for table in seen["tables"]:
        if table["name"] == name and table["caption"].startswith(caption):
            return [{column: re.sub(r"\s+", " ", text) for column, text in row.items()} for row in table["rows"]]
    expect("a table", False, (name, caption))
    return []


def check_row(what, row, want):
    """Checks the columns of `want`."""
    expect(what, {column: row.get(column) for column in want} == want, (row, want))


def check_calls(seen, stat):
    rows = rows_of(seen, "calls")
    for row in rows:
        call = stat["calls"][row["call"]]
        check_row("calls of " + row["call"], row, {"count": count_text(call["count"])})
        if "bytes" in call:
            check_row("bytes of " + row["call"], row, {key: bytes_text(call[key]) for key in ("bytes", "min_bytes", "max_bytes")})
    expect("all calls", len(rows) == len(stat["calls"]))


def check_sizes(seen, stat):
    rows = rows_of(seen, "sizes")
    expect("all sizes", len(rows) == len(stat["sizes"]))
    for row, size in zip(rows, stat["sizes"]):
        check_row("sizes", row, {"count": count_text(size["count"]),
                                 **{key: bytes_text(size[key]) for key in ("bytes", "live_at_peak_bytes", "live_at_end_bytes")}})


def check_results(seen, results):
    rows = rows_of(seen, "results")
    expect("all allocators", len(rows) == len(results["allocators"]), rows)
    for row, r in zip(rows, results["allocators"]):
        check_row("result", row, {"allocator": r["allocator"]["name"], "runs": str(len(r["runs"])),
                                  **{key: ns_text(r[key]) for key in ("wall_ns", "ns_per_event")},
                                  **{key: bytes_text(r[key]) for key in ("peak_rss_bytes", "mean_rss_bytes")}})


def frame_text(frame):
    base = lambda path: path[path.rfind("/") + 1:]
    place = f"{base(frame['file'])}:{frame['line']}" if frame["file"] else base(frame["module"])
    return frame["function"] + (f" ({place})" if place else "")


def check_profile(seen, profile):
    """Checks that the sortable table and the top of the page begin with the heaviest sites at
    the peak."""
    order = sorted(range(len(profile["stacks"])), key=lambda i: (-profile["live_at_peak_bytes"][i], i))
    rows = rows_of(seen, "sites")
    expect("heaviest sites", len(rows) == min(len(order), 25) or len(rows) == min(len(order) + 1, 25), len(rows))
    listed = [r for r in rows if r["site"] != "(other call sites)"]
    for i, row in zip(order, listed):
        check_row("site", row, {"peak": bytes_text(profile["live_at_peak_bytes"][i]), "end": bytes_text(profile["live_at_end_bytes"][i]),
                                "allocated": bytes_text(profile["allocated_bytes"][i]), "allocs": count_text(profile["allocs"][i])})
    for i, row in zip(order, rows_of(seen, "top-sites")):
        check_row("top site", row, {"bytes": bytes_text(profile["live_at_peak_bytes"][i])})


def check_sites(seen, item):
    stat = item["stat"]
    c = stat.get("call_sites")
    if "profile" in item:
        check_profile(seen, item["profile"])
        return
    for name, key, which in [("sites-at-peak", "at_peak", "live_at_peak"), ("sites-at-end", "at_end", "live_at_end")] if c else []:
        rows = rows_of(seen, name) if c[key] else []
        expect("all sites " + key, len(rows) == len(c[key]), rows)
        for row, site in zip(rows, c[key]):
            check_row("site", row, {"bytes": bytes_text(site[which + "_bytes"]), "blocks": count_text(site[which + "_blocks"]),
                                    "allocs": count_text(site["allocs"])})
            # The innermost function of the program, the library function called by it, and the
            # stack.
            texts = [re.sub(r"\s+", " ", frame_text(f)) for f in site["frames"]] or ["(unknown)"]
            own = next((i for i, f in enumerate(site["frames"]) if not f["library"]), 0)
            want = texts[own] + (" via " if own else "")
            expect("frames", row["site"].startswith(want), (row["site"], texts))
            expect("stack", row["site"].endswith("stack" + "".join(texts) if len(texts) > 1 else want), (row["site"], texts))


# With recorded stacks, the sentence has the shares rounded down; shares of 0 bytes are left out.
def check_coverage(seen, stat):
    c = stat.get("stack_coverage")
    keys = [("allocated_bytes", "allocated bytes"), ("live_at_peak_bytes", "bytes live at the peak"), ("live_at_end_bytes", "bytes live at the end")]
    def shares(part):
        return ", ".join(f"{1000 * c[part][k] // c['all'][k] / 10:.1f} % of {of}" for k, of in keys if c["all"][k])
    sampled = " (estimated from sampled stacks)" if c and "stack_sample_bytes" in c else ""
    others = [("loading", "Constructors of libraries", ", before the program's first allocation"), ("threads", "Threads of libraries", ""), ("before", "The program", " before the recording")]
    said = "".join(f" {which} allocated {shares(part)}{rest}." for part, which, rest in others if c and (c[part]["allocated_bytes"] or c[part]["live_at_peak_bytes"]))
    expect("coverage", seen["coverage"] == ([f"Stacks reach the program's own code for {shares('reached')}{sampled}.{said}"] if c else []), seen["coverage"])
    rows = rows_of(seen, "stack-ends") if c and c["ends"] else []
    expect("stack ends", [r["object"] for r in rows] == [e["object"] for e in (c or {}).get("ends", [])], rows)


def check_fragmentation(seen, results):
    for r in results:
        for key, moment in [("at_peak", "at the peak"), ("at_end", "at the end")]:
            h = (r["result"].get("fragmentation") or {}).get(key)
            if not h:
                continue
            name = ",".join([r["result"]["allocator"]["name"], *r["result"]["allocator"]["tunables"]])
            rows = rows_of(seen, "pinning", f"Pinning blocks: {name}, {moment}")
            groups = [x for by in ["by_size", "by_age", "by_thread", "by_site"] for x in h.get(by, [])]
            expect("fragmentation " + moment, groups and len(rows) == len(groups), rows)
            for row, x in zip(rows, groups):
                check_row("fragmentation " + moment, row, {"blocks": count_text(x["blocks"]),
                                                           **{column: bytes_text(x[column]) for column in ("stranded_bytes", "live_bytes")}})


def check_look(seen, charts):
    expect("drawn", seen["ready"])
    expect("wider than the window", not seen["wide"])
    expect("names", not seen["unnamed"], seen["unnamed"])
    expect("ids twice", not seen["ids"], seen["ids"])
    expect("charts", len(seen["charts"]) >= charts, seen["charts"])
    for chart in seen["charts"]:
        expect("painted", chart["painted"] > 300, chart)


def main():
    page = sys.argv[1]
    data = data_of(page)
    charts = 2 * len(data["workloads"]) + 1
    seen = look(page, "--twice", "--run", "document.querySelector('input[value=ns]')?.click()")
    expect("complaints", not seen["complaints"], seen["complaints"])
    expect("requests", not seen["requests"], seen["requests"])
    check_look(seen, charts)
    check_look(seen["narrow"], charts)
    if data["mode"] == "report" and data["workloads"]:
        check_calls(seen, data["workloads"][0]["stat"])
        check_sizes(seen, data["workloads"][0]["stat"])
        expect("findings", seen["findings"])
        check_sites(seen, data["workloads"][0])
        check_coverage(seen, data["workloads"][0]["stat"])
    check_fragmentation(seen, data["results"])
    if len(sys.argv) > 2:
        check_results(seen, json.load(open(sys.argv[2], encoding="utf-8")))
    print("\n".join(wrong) if wrong else "the page is as it should be")
    sys.exit(len(wrong) > 0)


main()
