"""What the scripts of a random project compute. A copy of this file is `scripts/kit.py` there; the model imports it.

Knows nothing of buildsys, as every script. What is made of equal texts is equal; some ways to make it lose most of what
they read, so that an edit may lead to the same outputs.
"""

import hashlib
import json
import os
import re
from pathlib import Path

_MOST_LINES = 8
_SHARD = re.compile(r"k\d+")


class Marked(Exception):
    """A text holds the mark that makes this action fail."""


def lines_of(way, fail, inputs, facts):
    """Lines made of texts. inputs: role -> [(file name, text)]. Raises Marked where a text holds the mark `fail`."""
    found = []
    for role, files in inputs.items():
        for name, text in files:
            if fail in text:
                raise Marked(f"{name} holds {fail}")
            lines = text.splitlines()
            if way == "names":
                found.append(f"{role} {name}")
            elif way == "first":
                lines = lines[:1]
            elif way == "count":
                lines = [f"{role} {len(lines)}"]
            found += lines
    if way == "set":
        found = sorted(set(found))
    return [*_clipped(found), *facts]


def file_text(form, lines, role, name):
    """The text of one output file. form: "text" or "table"."""
    lines = [*lines, f"{role} is {name}"]
    if form == "table":
        lines = [json.dumps({"line": line}) for line in lines]
    return "".join(f"{line}\n" for line in lines)


def folder_files(lines, role, name):
    """The files of one output that is a folder: name -> text."""
    return {"all.txt": file_text("text", lines, role, name), "below/last.txt": f"{lines[-1] if lines else role}\n"}


def scattered(lines):
    """Shard -> its lines, by the first word of each line."""
    shards = {}
    for line in lines:
        word = line.partition(" ")[0]
        shards.setdefault(word if _SHARD.fullmatch(word) else "k0", []).append(line)
    return shards


def make(way, fail, forms, inputs, outputs, facts):
    """What each function does. inputs, outputs: role -> path, or list of paths. forms: see `write`."""
    lines = lines_of(way, fail, {role: _read(given) for role, given in inputs.items()}, facts)
    for role, path in outputs.items():
        write(forms[role], lines, role, path)


def holds(word, inputs):
    """Whether any text among the inputs holds a word."""
    return any(word in text for given in inputs.values() for _, text in _read(given))


def peeked(kind, path):
    """A line on what is at a path that no rule has to declare. kind: "file", "folder" or "exists"."""
    if kind == "exists":
        return peek_line(kind, path, os.path.exists(path))
    try:
        if kind == "folder":
            return peek_line(kind, path, sorted(os.listdir(path)))
        with open(path) as file:
            return peek_line(kind, path, file.read())
    except FileNotFoundError:
        return peek_line(kind, path, None)


def peek_line(kind, path, found):
    return f"{kind} {path}: {found!r}"


def write(form, lines, role, path):
    """form: "text", "table", "folder", or for an origin the name of each shard's file, with `*` for the shard."""
    if form == "folder":
        for name, text in folder_files(lines, role, path.name).items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)
    elif "*" in form:
        for shard, own in scattered(lines).items():
            name = form.replace("*", shard)
            (path / name).write_text(file_text("text", own, role, name))
    else:
        path.write_text(file_text(form, lines, role, path.name))


def command(words, way, fail, forms, inputs, facts):
    """What each script of a command does: its words are `--role path ...`. inputs: their roles, in order.

    What is called `s...` is a setting, and makes no difference.
    """
    groups = {}
    for word in words:
        if word.startswith("--"):
            values = groups[word.removeprefix("--")] = []
        else:
            values.append(word)
    given = {role: [Path(path) for path in groups[role]] for role in inputs}
    outputs = {role: Path(groups[role][0]) for role in forms}
    rest = [f"{name}={values}" for name, values in groups.items() if name not in {*given, *outputs} and name[0] != "s"]
    make(way, fail, forms, given, outputs, [*facts, *rest])


def _read(given):
    return [pair for path in (given if isinstance(given, list) else [given]) for pair in _texts(path)]


def _texts(path):
    if not path.is_dir():
        return [(path.name, path.read_text())]
    files = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    return [(f"{path.name}/{name}", (path / name).read_text()) for name in files]


def _clipped(lines):
    """Texts do not grow from rule to rule, and yet each of their lines counts."""
    if len(lines) <= _MOST_LINES:
        return lines
    rest = "\n".join(lines[_MOST_LINES:])
    return [*lines[:_MOST_LINES], hashlib.sha1(rest.encode()).hexdigest()[:12]]
