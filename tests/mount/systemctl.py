#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""systemctl --user without a service manager: what "hushvol mount --login" asks of it. Installed as
"systemctl" in a folder of PATH, with manager.json beside it: the unit's file, the program, the
environment that units get, and whether it is deaf (no manager answers).

A unit is run as systemd does: of nothing that the caller has but the unit's name; in a session of
its own, with a clean environment, home as the current folder, no terminal, its words in a journal.
While it starts, everything that others could read of its processes is kept in the file "seen"."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(sys.argv[0]).absolute().parent
MANAGER = json.loads((HERE / "manager.json").read_text())


def read(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""  # it has ended, or shows that to nobody


def processes():
    """Of the units, by their command line: process id to what ps shows."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        words = read(pid, "cmdline")
        if MANAGER["program"].encode() in words and b"--from-login" in words:
            found[int(pid)] = words + read(pid, "environ")
    return found


def look(seen):
    with open(HERE / "seen", "ab") as f:
        for text in processes().values():
            f.write(text)
    folder = Path(MANAGER["environment"]["XDG_RUNTIME_DIR"]) / "hushvol"
    for path in folder.glob("*.login"):
        with contextlib.suppress(FileNotFoundError):  # removed as soon as it has been read
            seen[path.name] = f"{path.lstat().st_mode:o}"


def words(key, instance):
    """A command of the unit, as its file has it."""
    unit = Path(MANAGER["unit"]).read_text()
    line = next(x for x in unit.splitlines() if x.startswith(key + "="))
    found = line.partition("=")[2].replace("%i", instance).split()
    return [MANAGER["program"], *found[1:]]


def run(key, instance):
    seen = {}
    with open(HERE / "journal", "ab") as journal:
        child = subprocess.Popen(words(key, instance), env=MANAGER["environment"],
                                 cwd=MANAGER["environment"]["HOME"], stdin=subprocess.DEVNULL,
                                 stdout=journal, stderr=journal, start_new_session=True)
        while child.poll() is None:
            look(seen)
            time.sleep(0.005)
    if key == "ExecStart":
        (HERE / "fifos").write_text(json.dumps(seen))
    return child.returncode


def active(instance):
    """As long as one of the unit's processes is left."""
    try:
        return set(json.loads((HERE / f"{instance}.pids").read_text())) & set(processes())
    except OSError:
        return False


def start(instance):
    before = set(processes())
    if active(instance):
        return 0
    status = run("ExecStart", instance)
    (HERE / f"{instance}.pids").write_text(json.dumps(sorted(set(processes()) - before)))
    if status != 0:
        print(f"Job for hushvol@{instance}.service failed because the control process exited with "
              f"error code.", file=sys.stderr)
    return 1 if status else 0


def main():
    with open(HERE / "calls", "a", encoding="utf-8") as f:
        print(*sys.argv[1:], file=f)
    if MANAGER.get("deaf") or sys.argv[1] != "--user":
        print("Failed to connect to bus: No such file or directory", file=sys.stderr)
        return 1
    verb, unit = sys.argv[2], sys.argv[-1]
    instance = unit.partition("@")[2].removesuffix(".service")
    if verb == "show-environment":
        print(*(f"{k}={v}" for k, v in MANAGER["environment"].items()), sep="\n")
        return 0
    if verb == "show":
        print("LoadState=loaded" if unit.startswith("hushvol@") else "LoadState=not-found")
        return 0
    return run("ExecStop", instance) if verb == "stop" else start(instance)


sys.exit(main())
