# SPDX-License-Identifier: BSD-2-Clause
"""What "hushvol COMMAND --help" prints, taken apart. The manual page and the completions of shells
are made from it at build time, so that an option is described in one place: the program."""

import re
import subprocess

COLUMN = 27  # where the description of an option begins
OPTION = re.compile(r"(?:^|, )(-{1,2}[a-z][a-z-]*)(\[=[^]]*\]|=?)(?: ([A-Z][^ ,]*))?")


def ask(program, *words):
    return subprocess.run([program, *words, "--help"], check=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True).stdout


def commands(program):
    """(words, help) of every command in the order of "hushvol --help", then of what it contains."""
    for name in re.findall(r"^  ([a-z]+) +\S", ask(program), re.M):
        text = ask(program, name)
        yield (name,), text
        usage = text.split("\n\n")[0]
        for word in dict.fromkeys(re.findall(rf"hushvol {name} ([a-z]+)", usage)):
            yield (name, word), ask(program, name, word)


def summaries(program):
    return dict(re.findall(r"^  ([a-z]+) +(\S.*)$", ask(program), re.M))


class Block:
    """kind is usage, text, code or list; lines are its own, or (term, description) of a list."""

    def __init__(self, kind):
        self.kind, self.lines = kind, []


def _split(line):
    """An option ends at a column; the terms of other lists are followed by two blanks."""
    if not line.lstrip().startswith("-"):
        term, _, rest = line.strip().partition("  ")
        return term, rest.strip()
    if len(line) > COLUMN and line[COLUMN - 1] == " " and line[COLUMN] != " ":
        return line[:COLUMN].strip(), line[COLUMN:].strip()
    return line.strip(), ""


def _add_item(items, line):
    indent = len(line) - len(line.lstrip())
    if indent >= COLUMN - 7 and items:
        term, rest = items[-1]
        items[-1] = (term, f"{rest} {line.strip()}".strip())
        return
    term, rest = _split(line)
    if items and items[-1][1] == "" and items[-1][0].endswith(","):
        items[-1] = (f"{items[-1][0]} {term}", rest)
    else:
        items.append((term, rest))


def _kind(line, before):
    if line.startswith("Usage:"):
        return "usage"
    if re.match(r"Examples?:$", line):
        return "code"
    if before in ("usage", "code"):
        return before
    return "list" if line.startswith("  ") else "text"


def blocks(text):
    block = None
    for line in text.splitlines():
        if line == "":
            if block is not None:
                yield block
            block = None
            continue
        kind = _kind(line, block.kind if block is not None else None)
        if block is None or kind != block.kind:
            if block is not None:
                yield block
            block = Block(kind)
        if kind == "list":
            _add_item(block.lines, line)
        else:
            block.lines.append(line)
    if block is not None:
        yield block


def options(text):
    """(names, argument or None, is the argument optional, description) of every documented option;
    names that mean the same are together: ("-v", "--verbose")."""
    for block in blocks(text):
        for term, description in block.lines if block.kind == "list" else []:
            if not term.startswith("-"):
                continue
            found = [(name, bool(optional), (optional[2:-1] if optional else word) or None)
                     for name, optional, word in OPTION.findall(term)]
            same = len(found) > 1 and not found[0][0].startswith("--")
            for group in [found] if same else [[f] for f in found]:
                yield (tuple(name for name, _, _ in group), group[-1][2], group[-1][1], description)


def mount_words(text):
    """The words of -o, as its help lists them: "ro", "uid=", "direct=auto|on|off"."""
    for names, _, _, description in options(text):
        if names == ("-o",):
            return [w.strip() for w in description.split(",")]
    return []
