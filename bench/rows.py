# SPDX-License-Identifier: BSD-2-Clause
"""What the program must reach, one function a group of rows. Each yields Row after Row and takes
down what it set up."""

import contextlib
import os
import shutil
import statistics
import time

from machine import CPUS, HEADER, MASKED, MIB, Failed, run
from measure import WORKLOADS, Row, limit, rate, row_of

GIB = 1 << 30
SECTOR = 4096
SPOTS = 65536  # of 4 KiB, for random reads over a large and over a small volume


def workload(meter, volume, name, device=None):
    words, through_loop = WORKLOADS[name]
    path = device if through_loop else volume.image
    return lambda: meter.stream(path, **words)


def against_limit(meter, name, target, ours, null):
    """ours as a share of L; the null path runs in every round."""
    cipher = meter.cipher(SECTOR)
    found, busy = meter.rounds({"ours": ours, "null": null})
    mid = {k: statistics.median(r[k].rate for r in found) for k in found[0]} | {"A": cipher}
    return row_of(f"{name} / L", target,
                  [r["ours"].rate / limit(r["null"].rate, cipher) for r in found],
                  f"{rate(mid['ours'])}; null {rate(mid['null'])}, A {rate(mid['A'])} x {CPUS}, "
                  f"L {rate(limit(mid['null'], mid['A']))}", busy, values=mid)


@contextlib.contextmanager
def both(meter):
    """The same disk with the cipher and without it, both with data."""
    m = meter.machine
    with m.volume(meter.scale.size) as ours, m.volume(meter.scale.size, cipher="null") as null:
        yield ours, null


def stream_rows(meter):
    with both(meter) as (ours, null):
        for name, target in (("read 1 MiB", ">= 0.90"), ("read 128 KiB", ">= 0.85"),
                             ("read 16 KiB", ">= 0.80"), ("write 1 MiB", ">= 0.95")):
            yield against_limit(meter, name, target, workload(meter, ours, name),
                                workload(meter, null, name))
        for op, target in (("read", ">= 0.60"), ("write", ">= 0.45")):
            words = dict(op=op, block=MIB)
            yield meter.pair(f"null {op} 1 MiB / plain {op} of the same file", target,
                             lambda: meter.stream(null.image, **words),
                             lambda: meter.stream(null.container, start=HEADER, **words), "plain")
        yield meter.pair("random read 4 KiB latency / null", "<= 1.15",
                         workload(meter, ours, "random read 4 KiB"),
                         workload(meter, null, "random read 4 KiB"), "null",
                         lambda r: r.p50_us)
        yield meter.pair("sequential read / sequential write", ">= 0.95",
                         workload(meter, ours, "read 1 MiB"),
                         workload(meter, ours, "write 1 MiB"), "write")


def loop_rows(meter):
    m = meter.machine
    with both(meter) as (ours, null), m.loop(ours.image) as dev, m.loop(null.image) as null_dev:
        for name in ("loop read 16 x 1 MiB", "loop write 16 x 1 MiB"):
            yield against_limit(meter, name, ">= 0.90", workload(meter, ours, name, dev),
                                workload(meter, null, name, null_dev))
        for name in ("loop random read 32 x 4 KiB", "loop random write 32 x 4 KiB"):
            yield meter.pair(f"{name} / null", ">= 0.90", workload(meter, ours, name, dev),
                             workload(meter, null, name, null_dev), "null")


def worker_rows(meter):
    """One synchronous reader with the AES instructions masked off: the cipher is all there is."""
    m = meter.machine
    name, target = "read 1 MiB, AES masked, 2 workers / 1", ">= 1.85"
    if CPUS < 2:
        yield Row(name, target=target, how="there is one core only")
        return
    with m.container(meter.scale.size) as c:
        with m.mounted(c) as v:
            m.fill(v.image)
        with m.mounted(c, "ro,threads=2", MASKED) as two, \
                m.mounted(c, "ro,threads=1", MASKED) as one:
            row = meter.pair(name, target, workload(meter, two, "read 1 MiB"),
                             workload(meter, one, "read 1 MiB"), "one")
    row.how += f"; A masked {rate(meter.cipher(SECTOR, MASKED))}"
    yield row


def spots(meter, volume, size):
    """Random 4 KiB reads of SPOTS written places spread over all of the volume."""
    words = dict(block=4096, size=size, stride=size // n_spots(meter))
    meter.stream(volume.image, op="write", seconds=0, depth=32, **words)
    return lambda: meter.stream(volume.image, op="read", pattern="rand", **words)


def n_spots(meter):
    return SPOTS if meter.scale.size > 16 * MIB else 1024


def sparse_rows(meter):
    m = meter.machine
    with m.volume(256 * GIB, sparse=True, fill=False) as large, \
            m.volume(GIB, sparse=True, fill=False) as small:
        row = meter.pair("random read 4 KiB, 256 GiB / 1 GiB", ">= 0.90",
                         spots(meter, large, 256 * GIB), spots(meter, small, GIB), "1 GiB")
        row.how += f"; {n_spots(meter)} spots of 4 KiB in each"
        yield row


def under_load(meter, volume, seconds):
    """The most that was resident while readers and writers kept a loop device full."""
    m, most = meter.machine, 0
    with m.loop(volume.image) as device, contextlib.ExitStack() as stack:
        for words in (dict(op="read", depth=16), dict(op="write", depth=16),
                      dict(op="read", block=4096, pattern="rand", depth=32)):
            stack.enter_context(m.background_stream(device, seconds=seconds, **words))
        stack.enter_context(m.background_stream(volume.image, op="read", seconds=seconds))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            most = max(most, volume.memory())
            time.sleep(0.01)
    return most


def memory_rows(meter):
    m = meter.machine
    with m.volume(meter.scale.size) as v:
        load = under_load(meter, v, meter.scale.seconds * 3) / MIB
    with m.volume(meter.scale.size, fill=False) as v:
        time.sleep(meter.scale.seconds)
        idle = v.memory() / MIB
    yield row_of("resident memory, idle", "<= 16 MiB", [idle], "just mounted", unit="MiB")
    yield row_of("resident memory, full load", "<= 96 MiB", [load],
                 "most while 48 requests through a loop device and a reader of the image are "
                 "in flight", unit="MiB")


def mount_rows(meter):
    """Mounting beyond the key derivation, which "key test" does as well."""
    m = meter.machine

    def seconds(what):
        began = time.monotonic()
        with what as _:
            took = time.monotonic() - began
        return took

    @contextlib.contextmanager
    def key_test(c):
        run(m.hushvol, "key", "test", c, "--passphrase-file", m.passphrase)
        yield

    with m.container(meter.scale.size) as c:
        found = [{"mount": seconds(m.mounted(c)), "key": seconds(key_test(c))}
                 for _ in range(meter.scale.pairs)]
    samples = [1e3 * (r["mount"] - r["key"]) for r in found]
    yield row_of("mount beyond the key derivation", "<= 50 ms", samples,
                 f"mount {statistics.median(r['mount'] for r in found) * 1e3:.0f} ms, key test "
                 f"{statistics.median(r['key'] for r in found) * 1e3:.0f} ms", unit="ms")


FILESYSTEMS = {
    "ext2": ["-F", "-q"], "ext4": ["-F", "-q"], "xfs": ["-f", "-q"], "btrfs": ["-f", "-q"],
    "vfat": [], "exfat": [], "f2fs": ["-f", "-q"], "ntfs": ["-F", "-Q", "-q"], "minix": [],
}


def can_make(fs, device):
    with contextlib.suppress(Failed):
        run(f"mkfs.{fs}", *FILESYSTEMS[fs], device)
        return True
    return False


def filesystem_rows(meter):
    """Whatever file system can be made on a plain disk can be made on ours."""
    m = meter.machine
    tools = [fs for fs in FILESYSTEMS if shutil.which(f"mkfs.{fs}")]
    if len(meter.scale.sectors) < 4:
        tools = [fs for fs in ("ext4", "xfs") if fs in tools][:len(meter.scale.sectors)]
    plain = m.path("plain.img")
    with open(plain, "wb") as f:
        os.truncate(f.fileno(), 512 * MIB)
    with m.loop(plain) as device:
        made = [fs for fs in tools if can_make(fs, device)]
    plain.unlink()
    failed, n = [], 0
    for sector in meter.scale.sectors:
        with m.volume(512 * MIB, sector=sector, sparse=True, fill=False) as v, \
                m.loop(v.image) as device:
            n += len(made)
            failed += [f"{fs} on {sector}" for fs in made if not can_make(fs, device)]
    if n == 0:
        raise Failed("no mkfs program made anything on a plain disk")
    yield row_of("file systems made / made on a plain disk", ">= 1.00", [1 - len(failed) / n],
                 f"{' '.join(made)}; sectors {' '.join(map(str, meter.scale.sectors))}"
                 + (f"; failed: {', '.join(failed)}" if failed else ""))


HASHES = ("hmac-md5", "hmac-sha1", "hmac-ripemd160", "hmac-sha256", "hmac-sha384", "hmac-sha512")
# What users measured when GELI was new: MB/s through AES, on disks that did 250; in 2014.
GELI_THEN = "GELI then 50, later below 150 MB/s"


def geli_rows(meter):
    """FreeBSD's format beside ours; its authenticated sectors beside those that are not."""
    m = meter.machine
    for sector in (SECTOR, 512):
        with m.volume(meter.scale.size // 2, sector=sector) as native, \
                m.geli(meter.scale.size // 2, sector) as geli:
            for name in ("read 1 MiB", "write 1 MiB"):
                row = meter.pair(f"geli / native, {sector}-byte sectors, {name}", ">= 0.90",
                                 workload(meter, geli, name), workload(meter, native, name),
                                 "native")
                row.how += f" ({GELI_THEN})"
                yield row
    with m.geli(meter.scale.size // 4) as plain:
        for integrity in HASHES:
            with m.geli(meter.scale.size // 4, integrity=integrity) as auth:
                for name in ("read 1 MiB", "write 1 MiB"):
                    yield meter.pair(f"geli {integrity} / without, {name}", "",
                                     workload(meter, auth, name), workload(meter, plain, name),
                                     "without")


GROUPS = {
    "stream": stream_rows,
    "loop": loop_rows,
    "workers": worker_rows,
    "sparse": sparse_rows,
    "memory": memory_rows,
    "mount": mount_rows,
    "filesystems": filesystem_rows,
    "geli": geli_rows,
}


def rows_of(meter, group):
    """A group that breaks off says so and does not end the run."""
    try:
        yield from GROUPS[group](meter)
    except (Failed, OSError, StopIteration) as error:
        yield Row(f"the rest of \"{group}\"", how=str(error))
