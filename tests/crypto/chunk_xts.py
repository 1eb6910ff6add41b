#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The ciphertext of a run of sectors, computed without the engine: HKDF and XTS from python's
cryptography package, after docs/format.md 5.1 and 9.

usage: chunk_xts.py PRK HEAD TAIL SHIFT KEYLEN SECTOR OFF < plaintext > ciphertext  (bytes in hex)
"""
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

prk, head, tail = (bytes.fromhex(a) for a in sys.argv[1:4])
shift, key_len, sector, off = (int(a) for a in sys.argv[4:8])
data = sys.stdin.buffer.read()
assert off % sector == 0 and len(data) % sector == 0
for at in range(0, len(data), sector):
    chunk = (off + at) >> shift
    info = head + chunk.to_bytes(8, "little") + tail
    key = HKDFExpand(hashes.SHA256(), key_len, info).derive(prk)
    tweak = ((off + at) // sector).to_bytes(16, "little")
    enc = Cipher(algorithms.AES(key), modes.XTS(tweak)).encryptor()
    sys.stdout.buffer.write(enc.update(data[at : at + sector]) + enc.finalize())
