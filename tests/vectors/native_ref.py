#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""An independent writer and reader of native containers in plain mode, from docs/format.md alone.

It shares no code with hushvol and is the other side of its tests: what one writes the other must
read. Written to be compared with the document line by line, not to be fast.

    native_ref.py make FILE --size SIZE [--passphrase TEXT] [--keyfile FILE]... [options]
    native_ref.py info FILE                     the header as JSON
    native_ref.py read FILE OFFSET LENGTH...    plaintext of one or more places to stdout
    native_ref.py extract FILE OUT              the whole disk, sparse
    native_ref.py chunk-key FILE CHUNK          the key of one 4 GiB chunk, hex
    native_ref.py recovery-key                  a new one
    native_ref.py dump FILE / undump TEXT FILE  a container as text and back
"""
import argparse
import copy
import hashlib
import json
import os
import struct
import sys
import uuid as uuid_module

from argon2.low_level import Type, hash_secret_raw
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

MAGIC = b"HUSHVOL\0"
BLOCK = 4096
COPIES = (0, 0x80000)
DATA_OFFSET = 0x100000
SLOTS = 14
CIPHERS = {"null": (0, 0), "aes-256-xts": (1, 64), "aes-128-xts": (2, 32)}
TYPES = {1: "passphrase", 2: "keyfile", 3: "both"}


class Damaged(Exception):
    """What is wrong with a container."""


# --- primitives -----------------------------------------------------------------------------------

def sha256(data):
    return hashlib.sha256(data).digest()


def hmac_sha256(key, data):
    mac = hmac.HMAC(key, hashes.SHA256())
    mac.update(data)
    return mac.finalize()


def hkdf_extract(salt, ikm):
    return hmac_sha256(salt, ikm)


def hkdf_expand(prk, info, length):
    return HKDFExpand(hashes.SHA256(), length, info).derive(prk)


def aes_ctr(key, data):
    c = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return c.update(data) + c.finalize()


def argon2id(password, salt, m_kib, t):
    return hash_secret_raw(password, salt, time_cost=t, memory_cost=m_kib, parallelism=1,
                           hash_len=32, type=Type.ID, version=0x13)


class Random:
    """os.urandom, or with a seed always the same bytes."""

    def __init__(self, seed):
        self.seed, self.n = seed, 0

    def __call__(self, length):
        if self.seed is None:
            return os.urandom(length)
        self.n += 1
        return hashlib.shake_256(f"{self.seed}/{self.n}".encode()).digest(length)


# --- header: 10.1, keys: 5.1 ----------------------------------------------------------------------

class Header:
    # the parameter block
    PARAMS = struct.Struct("<BBBB III QQQ 32s 56x")

    def params(self):
        return self.PARAMS.pack(1, self.cipher, 1, 0, self.unit, 512, self.chunk_shift,
                                self.data_offset, 0, 0, self.salt)

    def prk(self, master):
        return hkdf_extract(self.salt, master)

    def key(self, master, label, length):
        return hkdf_expand(self.prk(master), b"hushvol v1 " + label + sha256(self.params_raw),
                           length)

    def chunk_key(self, master, chunk):
        name = [n for n, (number, _) in CIPHERS.items() if number == self.cipher][0]
        return self.key(master, b"xts" + struct.pack("<Q", chunk), 64)[:CIPHERS[name][1]]

    def encode(self, master):
        self.params_raw = self.params()
        b = bytearray(BLOCK)
        struct.pack_into("<8sHHIQ16sIII", b, 0, MAGIC, 1, 0, BLOCK, self.seq, self.uuid, 0, 0, 0)
        b[0x38:0xb8] = self.params_raw
        struct.pack_into("<IIQ48s", b, 0xb8, self.flags, 0, self.capacity, self.label)
        struct.pack_into("<Q", b, 0x1b8, self.slot_seq)
        for i, slot in self.slots.items():
            b[0x200 + 256 * i:0x300 + 256 * i] = slot
        b[0x1c0:0x1e0] = hmac_sha256(self.key(master, b"hdr", 32), bytes(b[:0x1b8]))
        b[0x1e0:0x200] = sha256(bytes(b))
        return bytes(b)

    @classmethod
    def decode(cls, b):
        zeroed = b[:0x1e0] + bytes(32) + b[0x200:]
        if len(b) != BLOCK or sha256(zeroed) != b[0x1e0:0x200]:
            raise Damaged("checksum")
        if b[:8] != MAGIC:
            raise Damaged("magic")
        h = cls()
        h.raw = b
        major, h.minor, size, h.seq = struct.unpack_from("<HHIQ", b, 8)
        h.uuid = b[0x18:0x28]
        incompat, ro_compat, h.compat = struct.unpack_from("<III", b, 0x28)
        h.reencrypting = incompat == 1
        if major != 1 or size != BLOCK or incompat & ~1 or ro_compat:
            raise Damaged("version or features")
        h.params_raw = b[0x38:0xb8]
        (mode, h.cipher, kdf, nodemac, h.unit, h.logical_block, h.chunk_shift, h.data_offset, _, _,
         h.salt) = cls.PARAMS.unpack(h.params_raw)
        if mode != 1 or kdf != 1 or nodemac != 0 or h.cipher > 2:
            raise Damaged("mode, cipher or kdf")
        h.flags, _, h.capacity, h.label = struct.unpack_from("<IIQ48s", b, 0xb8)
        h.slot_seq = struct.unpack_from("<Q", b, 0x1b8)[0]
        h.slots = {i: b[0x200 + 256 * i:0x300 + 256 * i] for i in range(SLOTS)
                   if b[0x200 + 256 * i] == 1}
        return h

    def check_mac(self, master):
        want = hmac_sha256(self.key(master, b"hdr", 32), self.raw[:0x1b8])
        if want != self.raw[0x1c0:0x1e0]:
            raise Damaged("header MAC")


# --- slots: 10.2 ----------------------------------------------------------------------------------

def keyfile_digest(keyfiles):
    data = b"".join(keyfiles)
    return sha256(b"keyfile" + struct.pack("<Q", len(data)) + data)


def slot_keys(slot, index, header, passphrase, keyfiles):
    """Ke and Km."""
    kind = slot[1]
    m_kib, t = struct.unpack_from("<II", slot, 8)
    salt_a, salt_h = slot[0x18:0x28], slot[0x28:0x38]
    password = keyfile_digest(keyfiles) if kind == 2 else passphrase
    second = keyfile_digest(keyfiles) if kind == 3 else b""
    prk = hkdf_extract(salt_h, argon2id(password, salt_a, m_kib, t) + second)
    info = (b"slot v1" + header.uuid + struct.pack("<I", index) + slot[:0x38]
            + sha256(header.params_raw))
    keys = hkdf_expand(prk, info, 64)
    return keys[:32], keys[32:]


def slot_tag(slot, header, km):
    return hmac_sha256(km, slot[:0x38] + header.uuid + sha256(header.params_raw)
                       + slot[0x38:0x58])


def slot_make(index, header, master, passphrase, keyfiles, m_kib, t, label, created, random):
    kind = 3 if passphrase and keyfiles else 2 if keyfiles else 1
    slot = bytearray(256)
    slot[0:4] = bytes((1, kind, 1, 1))
    struct.pack_into("<III", slot, 8, m_kib, t, 1)
    slot[0x18:0x28], slot[0x28:0x38] = random(16), random(16)
    ke, km = slot_keys(bytes(slot), index, header, passphrase, keyfiles)
    slot[0x38:0x58] = aes_ctr(ke, master)
    slot[0x78:0x98] = slot_tag(bytes(slot), header, km)
    struct.pack_into("<Q32s", slot, 0x98, created, label)
    return bytes(slot)


def slot_open(slot, index, header, passphrase, keyfiles):
    """The master key, or None."""
    kind = 3 if passphrase and keyfiles else 2 if keyfiles else 1
    if slot[1] != kind:
        return None
    ke, km = slot_keys(slot, index, header, passphrase, keyfiles)
    return aes_ctr(ke, slot[0x38:0x58]) if slot_tag(slot, header, km) == slot[0x78:0x98] else None


# --- recovery keys: 10.6 --------------------------------------------------------------------------

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
GROUPS = 13


def field_product(a, b):
    """In GF(2^5) with x^5 = x^2 + 1; bit i of a number is the coefficient of x^i."""
    product = 0
    for i in range(5):
        if b >> i & 1:
            product ^= a << i
    for i in range(9, 4, -1):
        if product >> i & 1:
            product ^= 0b100101 << (i - 5)
    return product


def group_number(values):
    """The sum of the five characters, each times its power of x, the first times x^4."""
    number = 0
    for value, power in zip(values, (0b10000, 0b1000, 0b100, 0b10, 1)):
        number ^= field_product(value, power)
    return number


def recovery_key(random):
    groups = []
    for number in range(GROUPS):
        values = [byte % 32 for byte in random(4)]
        values += [c for c in range(32) if group_number(values + [c]) == number]
        groups.append("".join(ALPHABET[v] for v in values))
    return "-".join(groups)


def canonical_passphrase(passphrase):
    """The one spelling of a recovery key; any other passphrase as it is."""
    if len(passphrase) > 512:
        return passphrase
    text = bytes(c for c in passphrase if c not in b" \t\r\n-").decode("latin-1")
    text = "".join(c.upper() if c.isascii() else c for c in text)
    text = text.translate(str.maketrans("OIL", "011"))
    if len(text) != 5 * GROUPS or any(c not in ALPHABET for c in text):
        return passphrase
    groups = [text[i:i + 5] for i in range(0, len(text), 5)]
    if any(group_number([ALPHABET.index(c) for c in g]) != n for n, g in enumerate(groups)):
        return passphrase
    return "-".join(groups).encode()


# --- re-encryption: 10.4 --------------------------------------------------------------------------

class Reencryption:
    """How far it is, and the old key."""
    RECORDS, DIGESTS, PIECE, ZONE_MAX = (0x20000, 0x21000), 0x30000, 512, 8 << 20
    RECORD = struct.Struct("<8sQQII128s32s32s")

    def __init__(self, f, header, master):
        k = header.key(master, b"reencrypt", 96)
        wrap, mac, self.digest_key = k[:32], k[32:64], k[64:]
        best = (0,)
        for at in self.RECORDS:
            f.seek(at)
            b = f.read(self.RECORD.size)
            magic, seq, done, zone, _, params, wrapped, tag = self.RECORD.unpack(b)
            if magic != b"HUSHREC\0" or hmac_sha256(mac, b[:0xc0]) != tag:
                continue
            if (seq in (0, 2**64 - 1) or done % header.unit or zone % header.unit
                    or zone > self.ZONE_MAX or done + zone > header.capacity
                    or params[:0x28] + params[0x48:]
                    != header.params_raw[:0x28] + header.params_raw[0x48:]):
                continue
            best = max(best, (seq, done, zone, params, wrapped))
        if best == (0,):
            raise Damaged("both records of the re-encryption")
        _, self.done, self.zone, params, wrapped = best
        self.master = aes_ctr(wrap, wrapped)
        self.header = copy.copy(header)
        self.header.params_raw, self.header.salt = params, params[0x28:0x48]
        f.seek(self.DIGESTS)
        self.digests = f.read(self.zone // self.PIECE * 16)

    def is_old(self, off, piece):
        if not self.done <= off < self.done + self.zone:
            return off >= self.done
        digest = hashlib.blake2b(piece, digest_size=16, key=self.digest_key,
                                 salt=struct.pack("<QQ", off, 0), person=b"hushvol digest\0\0")
        at = (off - self.done) // self.PIECE * 16
        return digest.digest() == self.digests[at:at + 16]


# --- the container --------------------------------------------------------------------------------

class Container:
    def __init__(self, f, header, master):
        self.f, self.header, self.master = f, header, master
        reencrypting = getattr(header, "reencrypting", False)
        self.old = Reencryption(f, header, master) if reencrypting else None

    @staticmethod
    def newest(f):
        headers = []
        for at in COPIES:
            f.seek(at)
            try:
                headers.append(Header.decode(f.read(BLOCK)))
            except Damaged as e:
                print(f"copy at {at:#x}: {e}", file=sys.stderr)
        if not headers:
            raise Damaged("both copies")
        return max(headers, key=lambda h: (h.seq, h.slot_seq))

    @classmethod
    def open(cls, f, passphrase, keyfiles):
        header = cls.newest(f)
        for index, slot in header.slots.items():
            master = slot_open(slot, index, header, passphrase, keyfiles)
            if master is not None:
                header.check_mac(master)
                return cls(f, header, master)
        raise Damaged("no slot opens")

    def unit_cipher(self, number, key=None):
        key = key or self
        chunk = (number * self.header.unit) >> self.header.chunk_shift
        tweak = struct.pack("<QQ", number, 0)
        return Cipher(algorithms.AES(key.header.chunk_key(key.master, chunk)), modes.XTS(tweak))

    def read_unit(self, number):
        unit = self.header.unit
        self.f.seek(self.header.data_offset + number * unit)
        data = self.f.read(unit)
        if len(data) != unit:
            raise Damaged("cut short")
        if self.header.cipher == 0 or data == bytes(unit):
            return data
        plain = bytearray(self.unit_cipher(number).decryptor().update(data))
        if self.old:
            old = self.unit_cipher(number, self.old).decryptor().update(data)
            for at in range(0, unit, 512):
                if self.old.is_old(number * unit + at, data[at:at + 512]):
                    plain[at:at + 512] = old[at:at + 512]
        for at in range(0, unit, 512):  # section 0: zero pieces
            if data[at:at + 512] == bytes(512):
                plain[at:at + 512] = bytes(512)
        return bytes(plain)

    def read(self, off, length):
        unit = self.header.unit
        first, last = off // unit, (off + length + unit - 1) // unit
        data = b"".join(self.read_unit(n) for n in range(first, last))
        return data[off - first * unit:][:length]

    def write(self, off, data):
        """off and the length are multiples of 16: XTS blocks are independent (section 9)."""
        unit = self.header.unit
        while data:
            number, inside = divmod(off, unit)
            part = data[:unit - inside]
            text = bytes(inside) + part + bytes(unit - inside - len(part))
            if self.header.cipher != 0:
                text = self.unit_cipher(number).encryptor().update(text)
            self.f.seek(self.header.data_offset + off)
            self.f.write(text[inside:inside + len(part)])
            off, data = off + len(part), data[len(part):]


# --- commands -------------------------------------------------------------------------------------

def pattern(off, length):
    """Plaintext that depends on its place only: SHA-256 of the number of each 32-byte piece."""
    first, last = off // 32, (off + length + 31) // 32
    data = b"".join(sha256(struct.pack("<Q", n)) for n in range(first, last))
    return data[off - first * 32:][:length]


def parse_size(text):
    for i, suffix in enumerate("KMGT"):
        if text.upper().endswith(suffix):
            return int(text[:-1], 0) << (10 * (i + 1))
    return int(text, 0)


def credentials(args):
    passphrase = args.passphrase.encode() if args.passphrase is not None else b""
    if args.passphrase_file:
        with open(args.passphrase_file, "rb") as f:
            passphrase = f.read()
        passphrase = passphrase[:-1] if passphrase.endswith(b"\n") else passphrase
    passphrase = canonical_passphrase(passphrase)
    keyfiles = []
    for path in args.keyfile:
        with open(path, "rb") as f:
            keyfiles.append(f.read())
    return passphrase, keyfiles


def cmd_make(args):
    random = Random(args.seed)
    passphrase, keyfiles = credentials(args)
    h = Header()
    h.cipher, h.unit = CIPHERS[args.cipher][0], args.sector_size
    h.chunk_shift, h.data_offset = args.chunk_shift, DATA_OFFSET
    h.seq, h.slot_seq, h.flags = args.seq, args.slot_seq, 1 if args.discard else 0
    h.capacity, h.label = parse_size(args.size), args.label.encode()
    h.uuid, h.salt, master = random(16), random(32), random(32)
    h.params_raw = h.params()
    h.slots = {args.slot: slot_make(args.slot, h, master, passphrase, keyfiles, args.m_kib, args.t,
                                    args.slot_label.encode(), args.created, random)}
    block = h.encode(master)
    with open(args.file, "w+b") as f:
        f.truncate(h.data_offset + h.capacity)
        for at in COPIES:
            f.seek(at)
            f.write(block)
        c = Container(f, h, master)
        for place in args.pattern:
            off, length = (parse_size(x) for x in place.split(":"))
            c.write(off, pattern(off, length))
        for place in args.data:
            off, path = place.split(":", 1)
            with open(path, "rb") as data:
                c.write(parse_size(off), data.read())


def cmd_info(args):
    with open(args.file, "rb") as f:
        h = Container.newest(f)
    slots = []
    for i, s in h.slots.items():
        m_kib, t, p = struct.unpack_from("<III", s, 8)
        slots.append({"slot": i, "kind": TYPES.get(s[1], s[1]), "m_kib": m_kib, "t": t, "p": p,
                      "created": struct.unpack_from("<Q", s, 0x98)[0],
                      "label": s[0xa0:0xc0].rstrip(b"\0").decode(errors="replace")})
    print(json.dumps({
        "cipher": h.cipher, "sector_size": h.unit, "logical_block": h.logical_block,
        "chunk_shift": h.chunk_shift, "data_offset": h.data_offset, "size": h.capacity,
        "flags": h.flags, "seq": h.seq, "slot_seq": h.slot_seq,
        "uuid": str(uuid_module.UUID(bytes=h.uuid)),
        "label": h.label.rstrip(b"\0").decode(errors="replace"), "slots": slots}, indent=1))


def cmd_read(args):
    with open(args.file, "rb") as f:
        c = Container.open(f, *credentials(args))
        places = [parse_size(x) for x in args.place]
        for off, length in zip(places[::2], places[1::2]):
            sys.stdout.buffer.write(c.read(off, length))


def cmd_extract(args):
    step = 1 << 20
    with open(args.file, "rb") as f, open(args.out, "wb") as out:
        c = Container.open(f, *credentials(args))
        for off in range(0, c.header.capacity, step):
            data = c.read(off, min(step, c.header.capacity - off))
            if data.count(0) != len(data):
                out.seek(off)
                out.write(data)
        out.truncate(c.header.capacity)


def cmd_chunk_key(args):
    with open(args.file, "rb") as f:
        c = Container.open(f, *credentials(args))
        print(c.header.chunk_key(c.master, int(args.chunk, 0)).hex())


def cmd_recovery_key(args):
    print(recovery_key(Random(args.seed)))


def data_ranges(fd, size):
    """Parts of a sparse file that are there."""
    at = 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(fd, at, os.SEEK_HOLE)
        yield at, end
        at = end


def cmd_dump(args):
    with open(args.file, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        print(f"size {size}")
        for start, end in data_ranges(f.fileno(), size):
            for at in range(start - start % 32, end, 32):
                f.seek(at)
                row = f.read(32)
                if row.count(0) != len(row):
                    print(f"{at:x} {row.hex()}")


def cmd_undump(args):
    with open(args.text, encoding="ascii") as text, open(args.file, "wb") as f:
        for line in text:
            word, _, rest = line.strip().partition(" ")
            if word == "size":
                f.truncate(int(rest))
            elif word and all(c in "0123456789abcdef" for c in word):
                f.seek(int(word, 16))
                f.write(bytes.fromhex(rest))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    credential = argparse.ArgumentParser(add_help=False)
    credential.add_argument("--passphrase")
    credential.add_argument("--passphrase-file")
    credential.add_argument("--keyfile", action="append", default=[])

    make = commands.add_parser("make", parents=[credential])
    make.add_argument("file")
    make.add_argument("--size", required=True)
    make.add_argument("--cipher", choices=CIPHERS, default="aes-256-xts")
    make.add_argument("--sector-size", type=int, default=4096)
    make.add_argument("--chunk-shift", type=int, default=32)
    make.add_argument("--m-kib", type=int, default=8192)
    make.add_argument("--t", type=int, default=1)
    make.add_argument("--slot", type=int, default=0)
    make.add_argument("--seq", type=int, default=1)
    make.add_argument("--slot-seq", type=int, default=1)
    make.add_argument("--discard", action="store_true")
    make.add_argument("--label", default="")
    make.add_argument("--slot-label", default="")
    make.add_argument("--created", type=int, default=0)
    make.add_argument("--seed", help="the same container every time")
    make.add_argument("--pattern", action="append", default=[], metavar="OFF:LEN")
    make.add_argument("--data", action="append", default=[], metavar="OFF:FILE")
    make.set_defaults(run=cmd_make)

    for name, run, words in (("info", cmd_info, ["file"]),
                             ("read", cmd_read, ["file", "place"]),
                             ("extract", cmd_extract, ["file", "out"]),
                             ("chunk-key", cmd_chunk_key, ["file", "chunk"]),
                             ("dump", cmd_dump, ["file"]),
                             ("undump", cmd_undump, ["text", "file"])):
        command = commands.add_parser(name, parents=[credential])
        for word in words:
            command.add_argument(word, nargs="+" if word == "place" else None)
        command.set_defaults(run=run)

    recovery = commands.add_parser("recovery-key")
    recovery.add_argument("--seed", help="the same key every time")
    recovery.set_defaults(run=cmd_recovery_key)

    args = parser.parse_args()
    try:
        args.run(args)
    except Damaged as e:
        sys.exit(f"native_ref: {args.command} failed: {e}")


if __name__ == "__main__":
    main()
