# SPDX-License-Identifier: BSD-2-Clause
"""Interleaved measurements and what comes of them. A ratio is made of pairs that ran one after the
other, so that what changes on the machine changes both; the row shows the median and the spread.

What others do on the machine meanwhile is looked at: a run in which they took more than a
twentieth of the cores is thrown away and repeated, as long as the patience of the row lasts."""

import os
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from machine import CPUS, MIB, run

BUSY = 0.05  # share of all cores
LOOK = 0.1  # seconds
WARM = 0.05  # seconds until threads are awake and read-ahead has found its stream
TICK = os.sysconf("SC_CLK_TCK")
KERNEL_THREAD = 0x00200000  # in the flags of /proc/PID/stat


@dataclass
class Scale:
    """How much is measured: --quick, --smoke or all."""
    pairs: int
    seconds: float  # of one stream
    size: int  # bytes of a volume
    patience: float  # seconds that a row may wait for a quiet machine
    sectors: tuple = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
    fresh_cipher: bool = True  # time the bare cipher for every row


FULL = Scale(pairs=9, seconds=0.3, size=512 * MIB, patience=40)
QUICK = Scale(pairs=5, seconds=0.1, size=256 * MIB, patience=1, sectors=(512, 4096, 65536),
              fresh_cipher=False)
SMOKE = Scale(pairs=1, seconds=0.02, size=16 * MIB, patience=0, sectors=(4096,),
              fresh_cipher=False)

# name: what the stream does, and whether it runs through a loop device
WORKLOADS = {
    "read 1 MiB": (dict(op="read", block=MIB), False),
    "read 128 KiB": (dict(op="read", block=128 << 10), False),
    "read 16 KiB": (dict(op="read", block=16 << 10), False),
    "write 1 MiB": (dict(op="write", block=MIB), False),
    "random read 4 KiB": (dict(op="read", block=4096, pattern="rand"), False),
    "random write 4 KiB": (dict(op="write", block=4096, pattern="rand"), False),
    "loop read 16 x 1 MiB": (dict(op="read", block=MIB, depth=16), True),
    "loop write 16 x 1 MiB": (dict(op="write", block=MIB, depth=16), True),
    "loop random read 32 x 4 KiB": (dict(op="read", block=4096, pattern="rand", depth=32), True),
    "loop random write 32 x 4 KiB": (dict(op="write", block=4096, pattern="rand", depth=32), True),
}


@dataclass
class Result:
    bytes: int
    seconds: float
    mean_us: float
    p50_us: float
    p99_us: float

    @property
    def rate(self):
        return self.bytes / self.seconds


@dataclass
class Row:
    name: str
    ratio: float = None  # None: could not be measured, note says why
    low: float = None
    high: float = None
    target: str = ""  # ">= 0.90"
    unit: str = ""
    how: str = ""
    busy: float = 0.0  # of the cores, by others, in the worst run that was kept
    values: dict = field(default_factory=dict)

    @property
    def verdict(self):
        if self.ratio is None:
            return "cannot run"
        if not self.target:
            return "-"
        relation, bound = self.target.split()[:2]
        ok = {">=": self.ratio >= float(bound), "<=": self.ratio <= float(bound),
              ">": self.ratio > float(bound)}[relation]
        return "ok" if ok else "short"

    def number(self, value):
        return f"{value:.1f}" if self.unit else f"{value:.2f}"

    def line(self):
        if self.ratio is None:
            return f"{self.name:46} {'-':>7}  {self.target:11} cannot run: {self.how}"
        text = f"{self.name:46} {self.number(self.ratio):>7}  {self.target:11} {self.verdict:5}"
        text += f"  {self.number(self.low)}..{self.number(self.high)}  {self.how}"
        if self.busy > BUSY:
            text += f"  [busy: others had {self.busy:.0%} of the cores]"
        return text

    def json(self):
        return {"name": self.name, "ratio": self.ratio, "min": self.low, "max": self.high,
                "target": self.target, "unit": self.unit, "verdict": self.verdict,
                "how": self.how, "busy": round(self.busy, 3), "values": self.values}


def row_of(name, target, samples, how, busy=0.0, unit="", values=None):
    return Row(name, statistics.median(samples), min(samples), max(samples), target, unit, how,
               busy, values or {})


def rate(bytes_per_s):
    return f"{bytes_per_s / 1e9:.2f} GB/s" if bytes_per_s >= 1e9 else f"{bytes_per_s / 1e6:.0f} MB/s"


def cpu_of(pid):
    """Parent, and seconds of a process with the children that it has reaped; None for threads of
    the kernel and for what is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    if int(fields[6]) & KERNEL_THREAD:
        return None
    return int(fields[1]), sum(map(int, fields[11:15])) / TICK


def cpu_between(before, after):
    """What all processes took from one look to the next. The time of one that ended in between
    moved to its parent, where only what is new counts."""
    moved = Counter()
    for pid, (parent, seconds) in before.items():
        if pid not in after:
            moved[parent] += seconds
    return sum(max(0.0, seconds - before.get(pid, (0, 0.0))[1] - moved[pid])
               for pid, (_, seconds) in after.items())


class Meter:
    """Runs streams and knows how busy others were meanwhile."""

    def __init__(self, machine, scale):
        self.machine = machine
        self.scale = scale
        self.ciphers = {}  # speeds that were measured once

    def others(self):
        ours = self.machine.pids | {os.getpid()}
        looks = {pid: cpu_of(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                 if pid not in ours}
        return {pid: look for pid, look in looks.items() if look}

    def stream(self, path, **words):
        words.setdefault("seconds", self.scale.seconds)
        words.setdefault("warm", min(WARM, words["seconds"] / 3))
        out = run(self.machine.io, path, *(f"{k}={v}" for k, v in words.items())).split()
        return Result(int(out[0]), *map(float, out[1:]))

    def cipher(self, sector, env=None):
        """Bytes a second of one core with nothing but the cipher: the most that was seen so far,
        for it is the core's own figure, and a full run looks again for each row."""
        key = (sector, bool(env))
        if self.scale.fresh_cipher or key not in self.ciphers:
            out = run("openssl", "speed", "-mr", "-seconds", "1", "-bytes", sector, "-evp",
                      "aes-256-xts", env=env)
            line = next(l for l in out.splitlines() if l.startswith("+F:"))
            self.ciphers[key] = max(self.ciphers.get(key, 0), float(line.split(":")[3]))
        return self.ciphers[key]

    def busy_while(self, what):
        began, before = time.monotonic(), self.others()
        result = what()
        took = max(time.monotonic() - began, 0.01)
        return result, min(1.0, cpu_between(before, self.others()) / took / CPUS)

    def quietly(self, what, give_up):
        """What what() returns, and how busy others were. When they were, it is done again in the
        next quiet moment, until it is time to give up."""
        result, busy = self.busy_while(what)
        while busy > BUSY and time.monotonic() < give_up:
            if self.busy_while(lambda: time.sleep(LOOK))[1] <= BUSY:
                result, busy = self.busy_while(what)
        return result, busy

    def rounds(self, variants, pairs=None):
        """Each of the variants once a round; a list of what they returned, and how busy it was."""
        give_up, worst, found = time.monotonic() + self.scale.patience, 0.0, []
        for _ in range(pairs or self.scale.pairs):
            this = {}
            for name, what in variants.items():
                this[name], busy = self.quietly(what, give_up)
                worst = max(worst, busy)
            found.append(this)
        return found, worst

    def pair(self, name, target, ours, other, label, figure=lambda r: r.rate):
        """The ordinary row: ours against one other thing."""
        found, busy = self.rounds({"ours": ours, "other": other})
        return pair_row(name, target, found, busy, label, figure)


def pair_row(name, target, found, busy, label, figure=lambda r: r.rate):
    mid = {k: statistics.median(figure(r[k]) for r in found) for k in ("ours", "other")}
    show = rate if mid["ours"] > 1e5 else (lambda us: f"{us:.1f} us")
    return row_of(name, target, [figure(r["ours"]) / figure(r["other"]) for r in found],
                  f"{show(mid['ours'])}; {label} {show(mid['other'])}", busy, values=mid)


def limit(null, cipher):
    """What is left when cipher work is spread perfectly over cores that the null path fills."""
    return 1 / (1 / null + 1 / (CPUS * cipher))

