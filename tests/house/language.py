#!/usr/bin/env python3
"""language.py HEAPTAPE [SOURCE]: finds words of language.txt in texts for users. Exits with 1 if
it finds any.

SOURCE is the directory of the project. Prints PLACE: 'WORD' (use REPLACEMENT): TEXT.
"""
import collections
import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
Text = collections.namedtuple("Text", "scope path line text")
Rule = collections.namedtuple("Rule", "scopes pattern replacement exceptions")

WORD = r'"((?:[^"\\]|\\.)*)"'
# Adjacent string literals are one text.
LITERALS = re.compile(rf"{WORD}(?:\s*(?:PRI\w+\s*)?{WORD})*")
CALLS = re.compile(r"\b(?:note|die|usage_error|err_set|err_set_errno|printf|puts|fputs|fprintf|warn)\(")
KEYS = re.compile(rf"\bjson_(?:key|put_\w+)\([^,]*,\s*{WORD}|\bput_\w+\(j\w*,\s*{WORD}")
IDENTIFIER = re.compile(r"[a-z]+(_[a-z]+)*")
JS_TEXTS = re.compile(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`((?:[^`\\]|\\.)*)`")


def read_rules(path):
    rules = []
    for number, line in enumerate(open(path), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        found = re.fullmatch(r"except(?: in (\S+))?\s+/(.*)/", line)
        if found:
            rules[-1].exceptions.append((found[1] or "", re.compile(found[2], re.I)))
            continue
        found = re.fullmatch(r"([a-z,]+)\s+/(.*?)/\s+(.+)", line)
        if not found:
            sys.exit(f"{path}:{number}: is no rule: {line}")
        rules.append(Rule(set(found[1].split(",")), re.compile(found[2], re.I), found[3], []))
    return rules


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def markdown(path, text):
    """Yields headings, column heads of tables, sentences without code, and code."""
    text = re.sub(r"(?ms)^```.*?^```[^\n]*$", lambda m: re.sub(r"[^\n]+", lambda l: f"`{l[0].replace('`', '')}`", m[0]), text)
    lines = text.split("\n")
    paragraph, start = [], 1
    for number, line in enumerate(lines + [""], 1):
        next_line = lines[number] if number < len(lines) else ""
        for code in re.findall(r"`([^`]+)`", line):
            yield Text("code", path, number, code)
        prose = re.sub(r"`[^`]*`|\]\([^)]*\)|https?:\S+", " _ ", line)
        if line.startswith("    ") and not paragraph:
            yield Text("code", path, number, line.strip())
        elif line.startswith("#"):
            yield Text("heading", path, number, prose.lstrip("# "))
        elif re.match(r"\s*\|[ :|-]+\|\s*$", next_line) and line.lstrip().startswith("|"):
            for cell in prose.strip().strip("|").split("|"):
                yield Text("heading", path, number, cell.strip())
        elif prose.strip():
            paragraph.append(prose.strip())
            continue
        if paragraph:
            yield Text("text", path, start, " ".join(paragraph))
        paragraph, start = [], number + 1


def join(match):
    return "".join(re.findall(WORD, match[0]))


def c_file(path, text):
    text = re.sub(r"'(\\?)\"'", r"'\1_'", text)
    for m in KEYS.finditer(text):
        yield Text("key", path, line_of(text, m.start()), m[1] or m[2])
    everything = path.startswith(("src/commands/", "src/cli/"))
    for m in LITERALS.finditer(text):
        before = text[max(0, m.start() - 300):m.start()]
        call = before.rsplit(";", 1)[-1]
        if IDENTIFIER.fullmatch(join(m)) and "human_items(" not in before[-100:]:
            yield Text("key", path, line_of(text, m.start()), join(m))
        elif (everything or CALLS.search(call)) and not before.endswith("#include ") and not KEYS.search(call + '"x"'):
            yield Text("text", path, line_of(text, m.start()), join(m))


def js_file(path, text):
    text = re.sub(r"(?m)^\s*//.*$", "", text)
    for m in JS_TEXTS.finditer(text):
        found = m[1] or m[2] or m[3] or ""
        if " " in found:
            yield Text("text", path, line_of(text, m.start()), found)
        elif IDENTIFIER.fullmatch(found):
            yield Text("key", path, line_of(text, m.start()), found)


def schema(path, node):
    if isinstance(node, list):
        for n in node:
            yield from schema(path, n)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "properties":
                yield from (Text("key", path, 1, k) for k in value)
            if key in ("description", "title"):
                if isinstance(value, str):
                    yield Text("text", path, 1, value)
            yield from schema(path, value)


def files(source):
    names = subprocess.run(["git", "-C", source, "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"],
                           capture_output=True, text=True)
    found = names.stdout.splitlines()
    if names.returncode != 0 or not found:
        found = [os.path.relpath(p, source) for p in glob.glob(os.path.join(source, "**"), recursive=True)]
    return [p for p in found if os.path.isfile(os.path.join(source, p))]


def of_files(source):
    for path in files(source):
        suffix = os.path.splitext(path)[1]
        wanted = (suffix == ".md" or path.startswith("docs/man/") or
                  path.startswith("docs/reference/json/") or
                  path.startswith("src/") and suffix in (".c", ".h", ".js", ".html"))
        if not wanted:
            continue
        text = open(os.path.join(source, path), errors="replace").read()
        if suffix == ".json":
            yield from schema(path, json.loads(text))
        elif suffix in (".md", ".scd"):
            yield from markdown(path, text)
        elif suffix in (".c", ".h"):
            yield from c_file(path, text)
        else:
            yield from js_file(path, text)


def of_program(heaptape):
    def run(*words):
        return subprocess.run([heaptape, *words], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z_]+) ", run("help"), re.M)
    yield Text("text", "heaptape help", 1, run("help"))
    for c in commands:
        if c == "help":
            continue
        text = run(c, "--help")
        for name in re.findall(r"^ +(?:-\w, )?--(?:no-)?([a-z-]+)", text, re.M):
            yield Text("option", f"heaptape {c} --help", 1, name)
        yield Text("text", f"heaptape {c} --help", 1, " ".join(text.split()))


def applies(rule, text):
    if "any" in rule.scopes:
        return rule.pattern.finditer(text.text)
    if text.scope == "code":
        whole = "key" in rule.scopes and IDENTIFIER.fullmatch(text.text) and rule.pattern.fullmatch(text.text)
        return [whole] if whole else []
    if text.scope not in rule.scopes and not (text.scope == "heading" and "text" in rule.scopes):
        return []
    if text.scope in ("key", "option"):
        whole = rule.pattern.fullmatch(text.text)
        return [whole] if whole else []
    return rule.pattern.finditer(text.text)


def excepted(rule, text, match):
    for place, pattern in rule.exceptions:
        if text.path.startswith(place):
            if any(e.start() <= match.start() and match.end() <= e.end() for e in pattern.finditer(text.text)):
                return True
    return False


def main():
    heaptape = sys.argv[1]
    source = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.dirname(HERE))
    rules = read_rules(os.path.join(HERE, "language.txt"))
    seen, found = collections.Counter(), {}
    for text in [*of_files(source), *of_program(heaptape)]:
        seen[text.scope] += 1
        for rule in rules:
            for m in applies(rule, text):
                if not excepted(rule, text, m):
                    around = text.text[max(0, m.start() - 40):m.end() + 40].replace("\n", " ")
                    found[f"{text.path}:{text.line}: '{m[0]}' (use {rule.replacement}): {around}"] = True
    print(*found, sep="\n")
    for scope in ("key", "option", "heading", "text", "code"):
        if not seen[scope]:
            sys.exit(f"nothing of scope '{scope}' was read: the patterns of this script are stale")
    sys.exit(1 if found else 0)


main()
