#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-2-Clause
"""writer.py IMAGE LOG SEED: a writer that knows what it was promised.

Writes numbered blocks at random places, fsyncs now and then, and then notes in LOG which number
each place had reached. LOG lies outside the volume: the daemon may die, this machine does not.
Ends with status 0 when the image goes away under it, 1 when anything else goes wrong.
"""

import errno
import os
import random
import struct
import sys

PLACES = 512
BLOCK = 4096 + 512  # so that writes cross cipher sectors
HEAD = struct.Struct("<8sIIQ")


def block(place, number):
    """A block that says which it is, all over."""
    head = HEAD.pack(b"numbered", place, 0, number)
    return head * (BLOCK // len(head)) + head[:BLOCK % len(head)]


def number_in(data, place):
    """The number in a block, 0 when it was never written, None when it is not whole."""
    if data == bytes(BLOCK):
        return 0
    _, _, _, number = HEAD.unpack_from(data)
    return number if data == block(place, number) else None


def run(image, log, seed):
    rng = random.Random(seed)
    fd = os.open(image, os.O_RDWR)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    number = 0
    written = {}
    try:
        while True:
            for _ in range(rng.randrange(1, 40)):
                number += 1
                place = rng.randrange(PLACES)
                # Noted before it is written: a number may be there that nobody was promised.
                written[place] = number
                data = block(place, number)
                if os.pwrite(fd, data, place * BLOCK) != len(data):
                    return 1
            os.fsync(fd)
            os.write(out, "".join(f"{p} {n}\n" for p, n in written.items()).encode())
            written = {}
    except OSError as e:
        gone = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ENODEV, errno.EINTR)
        print(f"ended by {errno.errorcode[e.errno]} at number {number}", flush=True)
        return 0 if e.errno in gone else 1


def promised(log):
    """What fsync had answered for: place -> the least number that must be there."""
    found = {}
    if os.path.exists(log):
        with open(log, encoding="ascii") as f:
            for line in f.read().split("\n")[:-1]:
                place, number = map(int, line.split())
                found[place] = max(number, found.get(place, 0))
    return found


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2], int(sys.argv[3])))
