# SPDX-License-Identifier: BSD-2-Clause
"""The pictures of docs/plots: throughput against sector size, against threads, against peers. Each
point is the median of interleaved streams; drawn by gnuplot as SVG."""

import shutil
import statistics
from pathlib import Path

from machine import CPUS, MASKED, MIB, run

STYLE = """
set terminal svg size 760,420 dynamic enhanced font "sans,13" background "#ffffff"
set output "{out}"
set border 3 lc "#888888"
set tics nomirror textcolor "#333333"
set grid ytics lc "#dddddd" lt 1
set key outside bottom center horizontal
set ylabel "GB/s"
set yrange [0:*]
set title "{title}"
"""
COLOURS = ("#1b6ca8", "#c8553d", "#8fb9d8", "#e6a08f", "#666666")


def gnuplot(out, title, body):
    if shutil.which("gnuplot") is None:
        run("apt-get", "install", "-y", "--no-install-recommends", "gnuplot-nox", timeout=600,
            env={"DEBIAN_FRONTEND": "noninteractive"})
    run("gnuplot", stdin=STYLE.format(out=out, title=title) + body)
    return out


def block(name, lines):
    return f"${name} << EOD\n" + "\n".join(lines) + "\nEOD\n"


def medians(meter, variants):
    """GB/s of each variant."""
    found, _ = meter.rounds(variants, min(5, meter.scale.pairs))
    return {k: statistics.median(getattr(r[k], "rate", r[k]) for r in found) / 1e9
            for k in variants}


def lines_of(columns, first=2):
    return ", ".join(f"$data using 0:{i + first}:xtic(1) with linespoints lw 2.5 pt 7 ps 0.7 "
                     f"lc \"{COLOURS[i]}\" title \"{name}\"" for i, name in enumerate(columns))


def size_name(size):
    return str(size) if size < 1024 else f"{size >> 10}K"


def against_sector(meter, folder, _rows):
    """One volume at a time beside the null one: memory is bounded."""
    m, size, lines = meter.machine, meter.scale.size // 2, []
    with m.volume(size, cipher="null") as null:
        for sector in meter.scale.sectors:
            with m.volume(size, sector=sector) as v:
                got = medians(meter, {
                    op + who: (lambda op=op, path=path: meter.stream(path, op=op, block=MIB))
                    for op in ("read", "write") for who, path in (("", v.image),
                                                                  (" null", null.image))}
                              | {"cipher": lambda: meter.cipher(sector)})
            lines.append(" ".join([size_name(sector), *(f"{v:.3f}" for v in got.values())]))
    columns = ("read", "read, null cipher", "write", "write, null cipher", "bare cipher, one core")
    return gnuplot(folder / "sector-size.svg",
                   f"One synchronous stream of 1 MiB requests, aes-256-xts, {CPUS} cores",
                   'set xlabel "cipher sector size, bytes"\n' + block("data", lines)
                   + f"plot {lines_of(columns)}\n")


def against_threads(meter, folder, _rows):
    """-o threads=N for one synchronous reader and writer, with AES instructions and without."""
    m, lines = meter.machine, []
    counts = sorted({1, 2, *range(4, CPUS + 1, 2), CPUS})
    with m.container(meter.scale.size // 2) as c:
        with m.mounted(c) as v:
            m.fill(v.image)
        for n in counts:
            got = {}
            for label, env in (("", None), (" masked", MASKED)):
                with m.mounted(c, f"threads={n}", env) as v:
                    got |= medians(meter, {
                        op + label: (lambda op=op: meter.stream(v.image, op=op, block=MIB))
                        for op in ("read", "write")})
            lines.append(" ".join([str(n), *(f"{v:.3f}" for v in got.values())]))
    columns = ("read", "write", "read, AES instructions masked", "write, AES instructions masked")
    return gnuplot(folder / "threads.svg",
                   f"One synchronous stream of 1 MiB requests, {CPUS} cores",
                   'set xlabel "-o threads=N"\n' + block("data", lines)
                   + f"plot {lines_of(columns)}\n")


def against_peers(_meter, folder, rows):
    """From the rows that were measured: what the peers ran, and ours beside them."""
    lines, names = [], ("read 1 MiB", "write 1 MiB")
    ours = {n: [r.values["ours"] for r in rows if r.name.startswith(f"{n} / ")
                and r.values and not r.name.endswith("/ L") and "masked" not in r.name]
            for n in names}
    if not all(ours.values()):
        return None
    lines.append("hushvol " + " ".join(f"{statistics.median(ours[n]) / 1e9:.3f}" for n in names))
    for peer in dict.fromkeys(r.name.split(" / ")[1] for r in rows
                              if r.values and r.name.startswith("read 1 MiB / ")):
        found = {r.name: r.values.get("other") for r in rows if r.values}
        values = [found.get(f"{n} / {peer}") for n in names]
        if None not in values:
            lines.append(" ".join([peer, *(f"{v / 1e9:.3f}" for v in values)]))
    bars = ", ".join(f"$data using {i + 2}:xtic(1) lc \"{COLOURS[i]}\" title \"{n}\""
                     for i, n in enumerate(("read", "write")))
    return gnuplot(folder / "peers.svg",
                   f"One synchronous stream of 1 MiB direct requests, {CPUS} cores",
                   "set style data histograms\nset style fill solid 0.9 noborder\n"
                   "set boxwidth 0.9\n" + block("data", lines)
                   + f"plot {bars}\n")


def draw(meter, folder, rows):
    """The paths of what could be drawn."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for picture in (against_sector, against_threads, against_peers):
        path = picture(meter, folder.resolve(), rows)
        if path is not None:
            yield path
