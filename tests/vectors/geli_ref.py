#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""geli_ref.py - create, read and describe FreeBSD GELI images (an oracle for tests).

Independent of hushvol: plain Python 3 (3.8 or later) plus OpenSSL's libcrypto through
ctypes (3.0 or later, with its "legacy" provider for Blowfish).  Written from the format
description docs/geli-format.md; nothing in here is fast, safe against hostile input beyond plain
checks, or meant for real secrets.

  geli_ref.py create  [options] IMAGE     write an image (metadata and encrypted data)
  geli_ref.py extract [options] IMAGE     decrypt it: raw bytes or only their SHA-256
  geli_ref.py info    [options] IMAGE     show the metadata; with a key also what opens
  geli_ref.py pattern SIZE                the plaintext that `create' uses by default
  geli_ref.py matrix  DIRECTORY           a whole set of images plus MANIFEST.tsv
  geli_ref.py check   DIRECTORY           decrypt every image of such a set again
  geli_ref.py selftest [VECTORS]          known answers; VECTORS = tests/vectors/geli.txt

Key material, for every command that needs it, in GELI's own order:
  -k FILE      key file (whole content); may be repeated, order matters
  -j FILE      pass file (first line without its newline); may be repeated, joined
  -p TEXT      passphrase given directly
With -k only, the volume has no passphrase (the iterations field becomes -1 on create
unless -i says otherwise).

Examples:
  geli_ref.py create -p secret --size 1M vol.geli
  geli_ref.py create -p secret -a hmac/sha256 -s 4096 --from plain.raw vol.geli
  geli_ref.py create -j pw1 --second-keyfile recovery.key --size 1M two-slots.geli
  geli_ref.py create -p secret --like theirs.geli --from plain.raw again.geli
       re-encrypts plain.raw with the metadata and keys of theirs.geli; `cmp theirs.geli
       again.geli' then checks a writer byte for byte (with -a: all but the unused bytes)
  geli_ref.py create -p secret --size 513M --range 512M-8K:16K sparse.geli
       a sparse image in which only 16 KiB around the first key change are encrypted
  geli_ref.py extract -p secret --out plain.raw vol.geli
  geli_ref.py extract -p secret --sha256 --range 4096:512 vol.geli
  geli_ref.py info -p secret --secrets vol.geli

Sizes take the suffixes K, M, G, T and simple sums and differences (512M-8K).

Exit status: 0 fine; 1 wrong data (authentication failure, mismatch); 2 usage, unusable
image or missing library; 3 the key opens no slot.
"""

import argparse
import ctypes
import ctypes.util
import hashlib
import hmac
import io
import json
import os
import random
import re
import struct
import sys

EXIT_DATA, EXIT_USAGE, EXIT_KEY = 1, 2, 3

# --------------------------------------------------------------------------- numbers

ALGORITHMS = {              # name: (number on disk, allowed key lengths, default first)
    "aes-xts": (22, (128, 256)),
    "aes-cbc": (11, (128, 192, 256)),
    "camellia-cbc": (21, (128, 192, 256)),
    "3des-cbc": (2, (192,)),
    "blowfish-cbc": (3, (128,) + tuple(range(160, 449, 32))),
    "null": (16, (512,)),
}
ALGORITHM_ALIASES = {"aes": "aes-xts", "camellia": "camellia-cbc", "3des": "3des-cbc",
                     "blowfish": "blowfish-cbc", "null-cbc": "null"}
ALGORITHM_NAMES = {number: name for name, (number, _) in ALGORITHMS.items()}

HASHES = {                  # name: (number on disk, hashlib name, tag bytes)
    "hmac/md5": (6, "md5", 16),
    "hmac/sha1": (7, "sha1", 20),
    "hmac/ripemd160": (8, "ripemd160", 20),
    "hmac/sha256": (18, "sha256", 32),
    "hmac/sha384": (19, "sha384", 48),
    "hmac/sha512": (20, "sha512", 64),
}
HASH_NAMES = {number: name for name, (number, _, _) in HASHES.items()}

FLAG_AUTH = 0x10
FLAG_BITS = {"onetime": 0x1, "boot": 0x2, "wo_detach": 0x4, "rw_detach": 0x8,
             "auth": 0x10, "ro": 0x20, "nodelete": 0x40, "geliboot": 0x80,
             "displaypass": 0x100, "autoresize": 0x200}

MAGIC = b"GEOM::ELI"
MASTER_KEY_BYTES = 128
SLOT_BYTES = 192            # master key and its 64-byte HMAC
SECTORS_PER_KEY = 1 << 20   # version 5 and later: the data key changes this often


class Trouble(Exception):
    """A problem to report to the user; carries the exit status."""

    def __init__(self, message, status=EXIT_USAGE):
        super().__init__(message)
        self.status = status


def parse_size(text):
    """'1M', '512M-8K', '4096+512' -> bytes."""
    total, sign = 0, 1
    tokens = re.findall(r"[+-]|[0-9]+[KMGTkmgt]?", text)
    if "".join(tokens) != text or not tokens:
        raise argparse.ArgumentTypeError("bad size: %s" % text)
    for token in tokens:
        if token in "+-":
            sign = -1 if token == "-" else 1
            continue
        unit = token[-1].upper()
        scale = {"K": 10, "M": 20, "G": 30, "T": 40}.get(unit, 0)
        total += sign * (int(token[:-1] if scale else token) << scale)
        sign = 1
    if total < 0:
        raise argparse.ArgumentTypeError("negative size: %s" % text)
    return total


def parse_range(text):
    """'OFFSET:LENGTH' -> (offset, length)."""
    offset, colon, length = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError("a range is OFFSET:LENGTH")
    return parse_size(offset), parse_size(length)


def pattern(offset, length):
    """Test plaintext: every 16-byte block states its own byte offset in decimal.

    Misplaced, swapped or repeated blocks are visible at a glance in a hex dump.
    """
    first, last = offset // 16, (offset + length + 15) // 16
    text = b"".join(b"%015d\n" % (i * 16) for i in range(first, last))
    return text[offset - first * 16:][:length]


# ------------------------------------------------------------------------- libcrypto

class Crypto:
    """The few EVP calls that are needed; one cached context per (cipher, key, way)."""

    EVP_NAMES = {"aes-xts": "AES-%d-XTS", "aes-cbc": "AES-%d-CBC",
                 "camellia-cbc": "CAMELLIA-%d-CBC", "3des-cbc": "DES-EDE3-CBC",
                 "blowfish-cbc": "BF-CBC"}
    CACHE_LIMIT = 64

    def __init__(self):
        name = ctypes.util.find_library("crypto")
        if not name:
            raise Trouble("libcrypto (OpenSSL) not found")
        lib = ctypes.CDLL(name)
        for function in ("OSSL_PROVIDER_load", "EVP_CIPHER_CTX_new", "EVP_get_cipherbyname"):
            getattr(lib, function).restype = ctypes.c_void_p
        lib.EVP_CIPHER_CTX_free.argtypes = [ctypes.c_void_p]
        lib.EVP_CIPHER_CTX_set_padding.argtypes = [ctypes.c_void_p, ctypes.c_int]
        lib.EVP_CIPHER_CTX_set_key_length.argtypes = [ctypes.c_void_p, ctypes.c_int]
        lib.EVP_CipherInit_ex.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_char_p] * 2 + [ctypes.c_int]
        lib.EVP_CipherUpdate.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                                         ctypes.POINTER(ctypes.c_int), ctypes.c_char_p, ctypes.c_int]
        lib.OSSL_PROVIDER_load(None, b"default")
        lib.OSSL_PROVIDER_load(None, b"legacy")
        self.lib = lib
        self.contexts = {}

    def _context(self, algorithm, keylen, key, encrypt):
        tag = (algorithm, keylen, key, encrypt)
        context = self.contexts.get(tag)
        if context:
            return context
        if len(self.contexts) >= self.CACHE_LIMIT:
            oldest = next(iter(self.contexts))
            self.lib.EVP_CIPHER_CTX_free(self.contexts.pop(oldest))
        name = self.EVP_NAMES[algorithm]
        name = (name % keylen if "%" in name else name).encode()
        cipher = self.lib.EVP_get_cipherbyname(name)
        context = self.lib.EVP_CIPHER_CTX_new()
        good = cipher and self.lib.EVP_CipherInit_ex(context, cipher, None, None, None, encrypt) == 1
        if good and algorithm == "blowfish-cbc":
            good = self.lib.EVP_CIPHER_CTX_set_key_length(context, len(key)) == 1
        if good:
            self.lib.EVP_CIPHER_CTX_set_padding(context, 0)
            good = self.lib.EVP_CipherInit_ex(context, None, None, key, None, encrypt) == 1
        if not good:
            raise Trouble("this libcrypto does not offer %s" % name.decode())
        self.contexts[tag] = context
        return context

    def run(self, algorithm, keylen, key, iv, data, encrypt):
        """One independent CBC chain or XTS unit; no padding."""
        context = self._context(algorithm, keylen, key, encrypt)
        out = ctypes.create_string_buffer(len(data) + 32)
        done = ctypes.c_int(0)
        if (self.lib.EVP_CipherInit_ex(context, None, None, None, iv, encrypt) != 1
                or self.lib.EVP_CipherUpdate(context, out, ctypes.byref(done), data, len(data)) != 1
                or done.value != len(data)):
            raise Trouble("libcrypto failed on %s" % algorithm)
        return out.raw[:len(data)]


_crypto = None


def crypto():
    global _crypto
    if _crypto is None:
        _crypto = Crypto()
    return _crypto


def hmac512(key, message):
    return hmac.new(key, message, hashlib.sha512).digest()


# -------------------------------------------------------------------------- metadata

class Metadata:
    """The block in the last provider sector."""

    def __init__(self, **fields):
        self.version, self.flags, self.keylen, self.aalgo = 7, 0, 128, None
        self.algorithm, self.provsize, self.sectorsize = "aes-xts", 0, 512
        self.keys, self.iterations, self.salt, self.slots = 1, 0, bytes(64), bytes(2 * SLOT_BYTES)
        self.__dict__.update(fields)

    @property
    def auth(self):
        return bool(self.flags & FLAG_AUTH)

    def encode(self):
        block = MAGIC.ljust(16, b"\0") + struct.pack(
            "<IIHH", self.version, self.flags, ALGORITHMS[self.algorithm][0], self.keylen)
        if self.version >= 1:       # version 0 knows no authentication and lacks the field
            block += struct.pack("<H", HASHES[self.aalgo][0] if self.aalgo else 0)
        block += struct.pack("<QIBi", self.provsize, self.sectorsize, self.keys, self.iterations)
        block += self.salt + self.slots
        return block + hashlib.md5(block).digest()

    @classmethod
    def decode(cls, block):
        if block[:10] != MAGIC + b"\0":
            raise Trouble("no GELI metadata")
        version, flags, ealgo, keylen = struct.unpack_from("<IIHH", block, 16)
        if version > 7:
            raise Trouble("metadata version %d is too new" % version)
        at, aalgo = 28, 0
        if version >= 1:
            (aalgo,) = struct.unpack_from("<H", block, at)
            at += 2
        provsize, sectorsize, keys, iterations = struct.unpack_from("<QIBi", block, at)
        at += 17
        end = at + 64 + 2 * SLOT_BYTES
        if len(block) < end + 16 or hashlib.md5(block[:end]).digest() != block[end:end + 16]:
            raise Trouble("metadata checksum (MD5) is wrong")
        if ealgo not in ALGORITHM_NAMES:
            raise Trouble("unknown encryption algorithm number %d" % ealgo)
        algorithm = ALGORITHM_NAMES[ealgo]
        if algorithm != "null" and keylen not in ALGORITHMS[algorithm][1]:
            raise Trouble("key length %d does not fit %s" % (keylen, algorithm))
        if flags & FLAG_AUTH and aalgo not in HASH_NAMES:
            raise Trouble("unknown authentication algorithm number %d" % aalgo)
        if sectorsize < 512 or sectorsize & (sectorsize - 1):
            raise Trouble("sector size %d is not a power of two from 512" % sectorsize)
        if iterations < -1:
            raise Trouble("iterations %d make no sense" % iterations)
        return cls(version=version, flags=flags, algorithm=algorithm, keylen=keylen,
                   aalgo=HASH_NAMES.get(aalgo) if flags & FLAG_AUTH else None,
                   provsize=provsize, sectorsize=sectorsize, keys=keys, iterations=iterations,
                   salt=block[at:at + 64], slots=block[at + 64:end])

    @classmethod
    def find(cls, image, provider_sector=None):
        """Look for the block in the last sector of every plausible sector size."""
        image.seek(0, os.SEEK_END)
        size = image.tell()
        problem = "no GELI metadata in the last sector"
        candidates = [provider_sector] if provider_sector else [512 << i for i in range(9)]
        for sector in candidates:
            if sector > size:
                break
            image.seek(size - sector)
            try:
                metadata = cls.decode(image.read(512))
            except Trouble as trouble:
                if "no GELI" not in str(trouble):
                    problem = str(trouble)
                continue
            if metadata.provsize == size:
                return metadata, sector
            problem = "metadata says %d bytes, the image has %d" % (metadata.provsize, size)
        raise Trouble(problem)

    # -- slots

    def _slot_cipher(self, user_key, data, encrypt):
        if self.algorithm == "null":
            return data             # GELI really stores the master key in the clear here
        algorithm = "aes-cbc" if self.algorithm == "aes-xts" else self.algorithm
        key = hmac512(user_key, b"\x01")[:self.keylen // 8]
        return crypto().run(algorithm, self.keylen, key, bytes(16), data, encrypt)

    def seal(self, slot, user_key, master_key):
        mac = hmac512(hmac512(user_key, b"\x00"), master_key)
        sealed = self._slot_cipher(user_key, master_key + mac, 1)
        at = slot * SLOT_BYTES
        self.slots = self.slots[:at] + sealed + self.slots[at + SLOT_BYTES:]
        self.keys |= 1 << slot

    def open_slot(self, slot, user_key):
        if not self.keys >> slot & 1:
            return None
        plain = self._slot_cipher(user_key, self.slots[slot * SLOT_BYTES:][:SLOT_BYTES], 0)
        master_key, mac = plain[:MASTER_KEY_BYTES], plain[MASTER_KEY_BYTES:]
        good = hmac.compare_digest(hmac512(hmac512(user_key, b"\x00"), master_key), mac)
        return master_key if good else None


class Components:
    """Key files and passphrase as the user gave them."""

    def __init__(self, keyfiles=(), passphrase=None):
        self.keyfiles, self.passphrase = list(keyfiles), passphrase

    def __bool__(self):
        return bool(self.keyfiles) or self.passphrase is not None

    def user_key(self, metadata):
        material = b"".join(self.keyfiles)
        if self.passphrase is not None:
            if metadata.iterations < 0:
                raise Trouble("this volume was made without a passphrase (iterations -1)")
            if metadata.iterations == 0:
                material += metadata.salt + self.passphrase
            else:
                material += hashlib.pbkdf2_hmac("sha512", self.passphrase, metadata.salt,
                                                metadata.iterations, 64)
        return hmac512(b"", material)


def open_volume(metadata, components, slot=None):
    """-> (slot number, user key, master key)"""
    if metadata.iterations < 0 and components.passphrase is not None:
        raise Trouble("this volume was made without a passphrase (iterations -1)", EXIT_KEY)
    user_key = components.user_key(metadata)
    for number in ((0, 1) if slot is None else (slot,)):
        master_key = metadata.open_slot(number, user_key)
        if master_key:
            return number, user_key, master_key
    raise Trouble("the key opens no slot", EXIT_KEY)


# ---------------------------------------------------------------------------- volume

class Volume:
    """Maps decrypted sectors to provider bytes and back."""

    def __init__(self, metadata, master_key, provider_sector, byte_order="little"):
        self.md, self.sector, self.order = metadata, provider_sector, byte_order
        self.iv_key, data_key = master_key[:64], master_key[64:]
        usable = metadata.provsize - provider_sector
        if metadata.auth:
            self.encryption_base = hmac512(data_key, b"\x10")
            self.auth_base = hmac512(data_key, b"\x11")
            _, self.hash_name, self.tag = HASHES[metadata.aalgo]
            self.piece = (provider_sector - self.tag) // 16 * 16
            self.pieces = -(-metadata.sectorsize // self.piece)
            self.stride = self.pieces * provider_sector
            self.size = usable // self.stride * metadata.sectorsize
        else:
            self.encryption_base = data_key
            self.stride = metadata.sectorsize
            self.size = usable // metadata.sectorsize * metadata.sectorsize
        self._chunk_keys = {}

    # -- keys and IVs; `offset' is always what feeds them on disk: the decrypted offset
    #    without authentication, the provider offset of the piece with it

    def data_key(self, offset, unit):
        if self.md.version < 5:
            return self.encryption_base
        chunk = offset // (SECTORS_PER_KEY * unit)
        if self.md.version == 5 and self.md.auth:
            chunk = 0                           # version 5 never advanced here
        if chunk not in self._chunk_keys:
            base = self.encryption_base if self.md.version >= 7 else self.iv_key
            self._chunk_keys[chunk] = hmac512(base, b"ekey" + struct.pack("<Q", chunk))
        return self._chunk_keys[chunk]

    def iv(self, offset):
        number = offset.to_bytes(8, self.order if self.md.version < 4 else "little")
        if self.md.algorithm == "aes-xts":
            return number + bytes(8)
        return hashlib.sha256(self.iv_key + number).digest()[:16]

    def _cipher(self, offset, unit, data, encrypt):
        if self.md.algorithm == "null":
            return data
        take = self.md.keylen // (4 if self.md.algorithm == "aes-xts" else 8)
        key = self.data_key(offset, unit)[:take]
        return crypto().run(self.md.algorithm, self.md.keylen, key, self.iv(offset), data, encrypt)

    def _tag(self, offset, ciphertext):
        key = hashlib.sha256(self.auth_base + offset.to_bytes(8, self.order)).digest()
        return hmac.new(key, ciphertext, self.hash_name).digest()

    def _piece_sizes(self):
        for number in range(self.pieces):
            yield min(self.piece, self.md.sectorsize - number * self.piece)

    # -- one decrypted sector

    def provider_offset(self, sector_number):
        return sector_number * self.stride

    def encrypt_sector(self, number, plain):
        at = self.provider_offset(number)
        if not self.md.auth:
            return self._cipher(at, self.md.sectorsize, plain, 1)
        out = []
        for size in self._piece_sizes():
            part, plain = plain[:size], plain[size:]
            sealed = self._cipher(at, self.sector, part, 1)
            out.append((self._tag(at, sealed) + sealed).ljust(self.sector, b"\0"))
            at += self.sector
        return b"".join(out)

    def decrypt_sector(self, number, stored, zero_pieces=False):
        """-> (plaintext, list of provider offsets whose tag is wrong)"""
        at = self.provider_offset(number)
        if not self.md.auth:
            return self._cipher(at, self.md.sectorsize, stored, 0), []
        plain, bad = [], []
        for index, size in enumerate(self._piece_sizes()):
            piece = stored[index * self.sector:][:self.sector]
            sealed = piece[self.tag:self.tag + size]
            if zero_pieces and not any(piece):
                plain.append(bytes(size))
            else:
                if not hmac.compare_digest(self._tag(at, sealed), piece[:self.tag]):
                    bad.append(at)
                plain.append(self._cipher(at, self.sector, sealed, 0))
            at += self.sector
        return b"".join(plain), bad


# -------------------------------------------------------------------------- creation

def random_source(seed):
    """A function n -> n bytes: the system's generator, or reproducible from a seed."""
    if seed is None:
        return os.urandom
    state = {"n": 0}

    def stream(count):
        state["n"] += 1
        return hashlib.shake_256(b"make-geli %d %s" % (state["n"], seed.encode())).digest(count)
    return stream


def new_volume(size, provider_sector=512, version=7, algorithm=None, keylen=None, aalgo=None,
               sectorsize=512, iterations=10, flags=(), first=None, second=None, slot=0,
               seed=None, salt=None, master_key=None, byte_order="little"):
    """Make fresh metadata and keys -> (Metadata, Volume)."""
    algorithm = algorithm or ("aes-xts" if version >= 5 else "aes-cbc")
    algorithm = ALGORITHM_ALIASES.get(algorithm, algorithm)
    if algorithm not in ALGORITHMS:
        raise Trouble("unknown encryption algorithm %s" % algorithm)
    keylen = keylen or ALGORITHMS[algorithm][1][0]
    if keylen not in ALGORITHMS[algorithm][1]:
        raise Trouble("%s has no %d-bit key" % (algorithm, keylen))
    if aalgo and aalgo not in HASHES:
        raise Trouble("unknown authentication algorithm %s" % aalgo)
    if not 0 <= version <= 7:
        raise Trouble("versions are 0 to 7")
    if aalgo and version < 1 or algorithm == "aes-xts" and version < 5:
        raise Trouble("version %d does not know that algorithm" % version)
    for number in (provider_sector, sectorsize):
        if number < 512 or number & (number - 1):
            raise Trouble("sector sizes are powers of two from 512")
    if sectorsize < provider_sector:
        raise Trouble("the sector size may not be below the provider's")
    if size % provider_sector or size < 2 * provider_sector:
        raise Trouble("the provider must be whole sectors of %d, at least two" % provider_sector)
    if not first:
        raise Trouble("a passphrase or key file is needed")
    get = random_source(seed)
    word = 0
    for flag in flags:
        if flag not in FLAG_BITS:
            raise Trouble("unknown flag %s" % flag)
        word |= FLAG_BITS[flag]
    salt, slots = salt or get(64), get(2 * SLOT_BYTES)
    master_key = master_key or get(MASTER_KEY_BYTES)
    md = Metadata(version=version, flags=word | (FLAG_AUTH if aalgo else 0), algorithm=algorithm,
                  keylen=keylen, aalgo=aalgo, provsize=size, sectorsize=sectorsize, keys=0,
                  iterations=iterations, salt=salt, slots=slots)
    md.seal(slot, first.user_key(md), master_key)
    if second:
        md.seal(1 - slot, second.user_key(md), master_key)
    return md, Volume(md, master_key, provider_sector, byte_order)


def write_image(stream, md, volume, source, ranges=None):
    """Encrypt source(offset, length) for the given ranges (default: all), add metadata."""
    stream.seek(0)
    stream.truncate(md.provsize)
    ss = md.sectorsize
    for offset, length in ranges or [(0, volume.size)]:
        if offset % ss or length % ss or offset + length > volume.size:
            raise Trouble("range %d:%d does not fit whole sectors of %d in %d bytes"
                          % (offset, length, ss, volume.size))
        for number in range(offset // ss, (offset + length) // ss):
            stream.seek(volume.provider_offset(number))
            stream.write(volume.encrypt_sector(number, source(number * ss, ss)))
    stream.seek(md.provsize - volume.sector)
    stream.write(md.encode().ljust(volume.sector, b"\0"))


def read_plain(stream, volume, offset=0, length=None, zero_pieces=False, bad=None):
    """Yield plaintext of the range, sector by sector (unaligned ranges are trimmed)."""
    length = volume.size - offset if length is None else length
    if offset + length > volume.size:
        raise Trouble("range ends beyond the volume's %d bytes" % volume.size)
    ss, end = volume.md.sectorsize, offset + length
    for number in range(offset // ss, -(-end // ss)):
        stream.seek(volume.provider_offset(number))
        plain, wrong = volume.decrypt_sector(number, stream.read(volume.stride), zero_pieces)
        if wrong:
            if bad is None:
                raise Trouble("authentication failure at provider offset %d" % wrong[0], EXIT_DATA)
            bad.extend(wrong)
        start = number * ss
        yield plain[max(offset - start, 0):max(min(end - start, ss), 0)]


# -------------------------------------------------------------------- command: create

def components_of(args, prefix=""):
    name = "second_" if prefix else ""
    keyfiles = []
    for path in getattr(args, name + "keyfile") or ():
        with open(path, "rb") as stream:
            keyfiles.append(stream.read())
    passphrase = None
    for path in getattr(args, name + "passfile") or ():
        with open(path, "rb") as stream:
            line = stream.read().split(b"\n", 1)[0]
        passphrase = (passphrase or b"") + line
    direct = getattr(args, name + "passphrase")
    if direct is not None:
        passphrase = (passphrase or b"") + os.fsencode(direct)
    return Components(keyfiles, passphrase)


def plaintext_source(args, size):
    """-> function (offset, length) -> bytes, padded with zeros at the end."""
    if args.zero:
        return lambda offset, length: bytes(length)
    if not args.source:
        return pattern
    data = io.BytesIO(args.stdin) if args.source == "-" else open(args.source, "rb")
    data.seek(0, os.SEEK_END)
    if data.tell() > size:
        raise Trouble("%s has %d bytes, the volume only %d" % (args.source, data.tell(), size))

    def read(offset, length):
        data.seek(offset)
        return data.read(length).ljust(length, b"\0")
    return read


def command_create(args):
    first, second = components_of(args), components_of(args, "second")
    if args.source == "-":
        args.stdin = sys.stdin.buffer.read()
    if args.like:
        with open(args.like, "rb") as model:
            md, sector = Metadata.find(model, args.provider_sector)
        _, _, master_key = open_volume(md, first)
        volume = Volume(md, master_key, sector, args.byte_order)
    else:
        sector, size = args.provider_sector or 512, args.size
        if size is None and args.source:
            have = len(args.stdin) if args.source == "-" else os.path.getsize(args.source)
            size = provider_size_for(have, sector, args)
        iterations = args.iterations
        if iterations is None:
            iterations = -1 if first.passphrase is None else 10
        md, volume = new_volume(
            1 << 20 if size is None else size, sector, args.version, args.ealgo, args.keylen,
            args.aalgo, args.sectorsize, iterations,
            [f for f in args.flags.split(",") if f], first, second, args.slot, args.seed,
            args.salt and bytes.fromhex(args.salt),
            args.master_key and bytes.fromhex(args.master_key), args.byte_order)
    source = plaintext_source(args, volume.size)
    with open(args.image, "w+b" if args.force else "x+b") as stream:
        try:
            write_image(stream, md, volume, source, args.range)
        except BaseException:
            os.unlink(args.image)
            raise
    print("%s: %d bytes, decrypted size %d" % (args.image, md.provsize, volume.size))
    return 0


def provider_size_for(plain_bytes, sector, args):
    """Smallest provider that holds so many decrypted bytes."""
    sectors = -(-plain_bytes // args.sectorsize)
    stride = args.sectorsize
    if args.aalgo:
        if args.aalgo not in HASHES:
            raise Trouble("unknown authentication algorithm %s" % args.aalgo)
        piece = (sector - HASHES[args.aalgo][2]) // 16 * 16
        stride = -(-args.sectorsize // piece) * sector
    return sectors * stride + sector


# ------------------------------------------------------------ commands: extract, info

def command_extract(args):
    with open(args.image, "rb") as stream:
        if args.metadata:
            with open(args.metadata, "rb") as backup:
                md = Metadata.decode(backup.read(512))
            sector = args.provider_sector or 512
        else:
            md, sector = Metadata.find(stream, args.provider_sector)
        _, _, master_key = open_volume(md, components_of(args), args.slot)
        volume = Volume(md, master_key, sector, args.byte_order)
        offset, length = args.range or (0, None)
        bad = [] if args.keep_going else None
        digest, total = hashlib.sha256(), 0
        out = None
        if not args.sha256:
            out = sys.stdout.buffer if args.out == "-" else open(args.out, "wb")
        for part in read_plain(stream, volume, offset, length, args.zero_pieces, bad):
            digest.update(part)
            total += len(part)
            if out:
                out.write(part)
        if out:
            out.flush()
    if args.sha256:
        print("%s  %d" % (digest.hexdigest(), total))
    if bad:
        print("authentication failure at provider offsets: %s" % " ".join(map(str, bad)),
              file=sys.stderr)
        return EXIT_DATA
    if args.expect and args.expect.lower() != digest.hexdigest():
        print("mismatch: got %s" % digest.hexdigest(), file=sys.stderr)
        return EXIT_DATA
    return 0


def command_info(args):
    with open(args.image, "rb") as stream:
        if args.metadata:
            md, sector = Metadata.decode(stream.read(512)), args.provider_sector or 512
        else:
            md, sector = Metadata.find(stream, args.provider_sector)
    volume = Volume(md, bytes(MASTER_KEY_BYTES), sector)
    facts = {
        "version": md.version,
        "flags": "0x%08x" % md.flags,
        "flag_names": [n for n, bit in FLAG_BITS.items() if md.flags & bit],
        "ealgo": md.algorithm, "keylen": md.keylen, "aalgo": md.aalgo,
        "provsize": md.provsize, "provider_sector": sector, "sectorsize": md.sectorsize,
        "keys": "0x%02x" % md.keys, "iterations": md.iterations, "decrypted_size": volume.size,
        "data_keys": 1 if md.version < 5 else
        ((md.provsize if md.auth else volume.size) - 1) // (SECTORS_PER_KEY * (sector if md.auth else md.sectorsize)) + 1,
        "salt": md.salt.hex(),
    }
    if md.auth:
        facts["piece_bytes"], facts["pieces_per_sector"] = volume.piece, volume.pieces
    components, status = components_of(args), 0
    if components:
        try:
            slot, user_key, master_key = open_volume(md, components, args.slot)
            facts["opens_slot"] = slot
            if args.secrets:
                facts["user_key"], facts["master_key"] = user_key.hex(), master_key.hex()
        except Trouble as trouble:
            if trouble.status != EXIT_KEY:
                raise
            facts["opens_slot"], status = None, EXIT_KEY
    if args.json:
        print(json.dumps(facts, indent=2))
    else:
        for name, value in facts.items():
            if isinstance(value, list):
                value = ",".join(value) or "-"
            print("%-17s %s" % (name, "-" if value is None else value))
    return status


# ----------------------------------------------------------- commands: matrix, check

KEY_MATERIAL = {            # files written beside a matrix
    "pw-plain": b"geli test passphrase",
    "pw-newline": b"geli test passphrase\nthis second line is ignored\n",
    "pw-empty": b"",
    "pw-129": b"y" * 129,
    "pw-200": b"x" * 200,
    "pw-utf8": "p\u00e4\u2660 \u017c\u00f3\u0142w".encode(),
    "pw-part1": b"geli test",
    "pw-part2": b" passphrase",
    "pw-other": b"the other one",
    "key-random": hashlib.shake_256(b"make-geli key file").digest(4096),
    "key-text": b"key file\nwith two lines\n",
    "key-nul": b"\0\0\0\0before and after\0\0\0\0",
}


def case(name, size=None, first=("pw-plain",), second=None, sectors=12, ranges=None, **options):
    return dict(name=name, size=size, first=first, second=second, sectors=sectors,
                ranges=ranges, options=options)


def standard_cases(large):
    """The fixed set: every version, cipher, hash, sector size and kind of key once."""
    for version in range(8):
        yield case("v%d-aes-cbc-128" % version, version=version, algorithm="aes-cbc")
    for version in (5, 6, 7):
        for keylen in (128, 256):
            yield case("v%d-aes-xts-%d" % (version, keylen), version=version, algorithm="aes-xts", keylen=keylen)
    for algorithm, keylens in (("aes-cbc", (192, 256)), ("camellia-cbc", (128, 192, 256)),
                               ("3des-cbc", (192,)), ("blowfish-cbc", (128, 192, 256, 448)),
                               ("null", (512,))):
        for keylen in keylens:
            yield case("v7-%s-%d" % (algorithm, keylen), algorithm=algorithm, keylen=keylen)
    for version, algorithm, keylen in ((0, "3des-cbc", 192), (0, "blowfish-cbc", 128), (0, "aes-cbc", 256),
                                       (3, "blowfish-cbc", 448), (3, "aes-cbc", 192), (4, "camellia-cbc", 256),
                                       (4, "3des-cbc", 192), (5, "camellia-cbc", 128), (6, "aes-cbc", 256)):
        yield case("v%d-%s-%d" % (version, algorithm, keylen), version=version, algorithm=algorithm, keylen=keylen)
    for size in (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072):
        few = 2 if size > 16384 else 4
        yield case("v7-aes-xts-128-sector%d" % size, sectorsize=size, sectors=few)
        if size in (4096, 65536):
            yield case("v7-aes-cbc-256-sector%d" % size, algorithm="aes-cbc", keylen=256, sectorsize=size, sectors=few)
    yield case("v4-aes-cbc-128-sector4096", version=4, sectorsize=4096, sectors=4)
    yield case("v0-aes-cbc-128-sector8192", version=0, sectorsize=8192, sectors=3)
    yield case("v7-aes-xts-256-4Kn", provider_sector=4096, sectorsize=4096, keylen=256, sectors=4)
    yield case("v7-aes-cbc-128-4Kn-sector16384", provider_sector=4096, sectorsize=16384, algorithm="aes-cbc", sectors=3)
    yield case("v7-aes-xts-128-ragged", size=4096 * 5 + 512 * 6, sectorsize=4096)
    # data authentication
    for name in ("sha1", "sha256", "sha512"):
        for version in (1, 4, 5, 6, 7):
            yield case("v%d-auth-%s-aes-cbc-128" % (version, name), version=version, algorithm="aes-cbc", aalgo="hmac/" + name)
        yield case("v7-auth-%s-aes-xts-128-sector4096" % name, aalgo="hmac/" + name, sectorsize=4096, sectors=4)
        yield case("v7-auth-%s-aes-xts-256-4Kn" % name, aalgo="hmac/" + name, keylen=256, provider_sector=4096,
                   sectorsize=4096, sectors=3)
    for name in ("md5", "ripemd160", "sha384"):
        yield case("v7-auth-%s-aes-xts-128" % name, aalgo="hmac/" + name)
    for algorithm, keylen in (("camellia-cbc", 256), ("3des-cbc", 192), ("blowfish-cbc", 448), ("null", 512)):
        yield case("v7-auth-sha256-%s-%d" % (algorithm, keylen), algorithm=algorithm, keylen=keylen, aalgo="hmac/sha256")
    for size in (1024, 2048, 8192, 16384):
        yield case("v7-auth-sha256-aes-xts-128-sector%d" % size, aalgo="hmac/sha256", sectorsize=size, sectors=3)
    yield case("v7-auth-sha256-ragged", size=512 * 9 * 4 + 512 * 6, aalgo="hmac/sha256", sectorsize=4096)
    yield case("v7-auth-sha256-half-written", aalgo="hmac/sha256", ranges=[(0, 512 * 6)])
    # keys
    yield case("key-iterations0", iterations=0)
    yield case("key-iterations1", iterations=1)
    yield case("key-iterations5000", iterations=5000)
    for name in ("newline", "empty", "129", "200", "utf8"):
        yield case("key-pass-%s" % name, first=("pw-" + name,))
    yield case("key-two-passfiles", first=("pw-part1", "pw-part2"))
    yield case("key-file-only", first=("key-random",), iterations=-1)
    yield case("key-two-files-only", first=("key-text", "key-nul"), iterations=-1)
    yield case("key-file-and-pass", first=("key-random", "pw-plain"))
    yield case("key-two-files-and-pass-iter0", first=("key-nul", "key-text", "pw-plain"), iterations=0)
    yield case("key-slot1-only", slot=1)
    yield case("key-both-slots", second=("pw-other",))
    yield case("key-slot1-file-only", second=("key-random",))
    yield case("key-both-slots-aes-cbc-256", algorithm="aes-cbc", keylen=256, second=("pw-other", "key-text"))
    yield case("key-both-slots-v3-blowfish", version=3, algorithm="blowfish-cbc", second=("pw-other",))
    yield case("flags-boot-geliboot", flags=("boot", "geliboot", "displaypass", "autoresize"))
    yield case("flags-readonly-nodelete", flags=("ro", "nodelete"))
    if large:
        edge = SECTORS_PER_KEY * 512
        for version in (4, 5, 6, 7):
            yield case("v%d-large-aes-%s-key-change" % (version, "cbc" if version == 4 else "xts"), version=version,
                       size=edge + 64 * 1024, ranges=[(0, 4096), (edge - 8192, 16384)])
        yield case("v7-large-auth-sha256-key-change", aalgo="hmac/sha256", size=edge + 64 * 1024,
                   ranges=[(0, 4096), ((edge // 1024 - 8) * 512, 8192)])


def random_cases(count, seed):
    """Valid combinations picked by a seeded generator; all names are opaque."""
    pick = random.Random("make-geli random %s" % seed)
    passes = [n for n in KEY_MATERIAL if n.startswith("pw-") and n not in ("pw-part1", "pw-part2")]
    files = [n for n in KEY_MATERIAL if n.startswith("key-")]
    for index in range(count):
        version = pick.choice((0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 7, 7, 7))
        gate = {"aes-xts": 5, "camellia-cbc": 4, "null": 99}    # what the FreeBSD tool of that version offers
        weight = {"aes-xts": 4, "aes-cbc": 3}
        algorithm = pick.choice([a for a in ALGORITHMS if version >= gate.get(a, 0) for _ in range(weight.get(a, 1))])
        options = dict(version=version, algorithm=algorithm, keylen=pick.choice(ALGORITHMS[algorithm][1]))
        if version >= 1 and pick.random() < 0.5:
            options["aalgo"] = pick.choice(sorted(HASHES))
        options["provider_sector"] = pick.choice((512, 512, 512, 4096))
        largest = 16384 if "aalgo" in options else 131072
        sizes = [512 << i for i in range(9) if options["provider_sector"] <= 512 << i <= largest]
        options["sectorsize"] = pick.choice(sizes)
        first = tuple(pick.sample(files, pick.choice((0, 0, 1, 2)))) + (pick.choice(passes),)
        second = None
        if pick.random() < 0.3:
            second = (pick.choice(files), "pw-other")
        options["iterations"] = pick.choice((0, 1, 2, 17, 1000))
        options["slot"] = pick.choice((0, 0, 1))
        options["flags"] = tuple(pick.sample(("boot", "nodelete", "geliboot", "displaypass", "autoresize"),
                                             pick.randint(0, 3)))
        yield case("random-%03d" % index, first=first, second=second,
                   sectors=max(2, min(12, 65536 // options["sectorsize"])), **options)


def every_case(part, parts):
    """Every version, cipher, key length, sector size and hash; part 0 .. parts-1 of them."""
    index = 0
    for version in range(8):
        for algorithm, (_, keylens) in ALGORITHMS.items():
            for keylen in keylens:
                for aalgo in (None,) + (tuple(HASHES) if version else ()):
                    for provider in (512, 4096):
                        for shift in range(9):
                            size = 512 << shift
                            if (algorithm == "aes-xts" and version < 5 or size < provider
                                    or aalgo and size > 16384):
                                continue
                            index += 1
                            if index % parts != part:
                                continue
                            options = dict(version=version, algorithm=algorithm, keylen=keylen, iterations=1,
                                           sectorsize=size, provider_sector=provider)
                            if aalgo:
                                options["aalgo"] = aalgo
                            yield case("all-%05d" % index, sectors=max(2, min(5, 16384 // size)), **options)


def components_from_names(names):
    keyfiles = [KEY_MATERIAL[n] for n in names if n.startswith("key-")]
    parts = [KEY_MATERIAL[n].split(b"\n", 1)[0] for n in names if n.startswith("pw-")]
    return Components(keyfiles, b"".join(parts) if parts else None)


def key_arguments(names):
    return " ".join(("-k " if n.startswith("key-") else "-j ") + n for n in names)


MANIFEST_COLUMNS = ("file", "image_sha256", "decrypted_size", "plain_range", "plain_sha256", "key", "other_key",
                    "version", "cipher", "keylen", "hash", "sectorsize", "provider_sector", "iterations", "slots")


def command_matrix(args):
    os.makedirs(args.directory, exist_ok=True)
    for name, content in KEY_MATERIAL.items():
        with open(os.path.join(args.directory, name), "wb") as stream:
            stream.write(content)
    if args.every:
        part, parts = map(int, args.every.split("/"))
        cases = every_case(part, parts)
    elif args.key_change:
        cases = (c for c in standard_cases(True) if "-large-" in c["name"])
    else:
        cases = random_cases(args.random, args.seed) if args.random else standard_cases(args.large)
    rows = []
    for item in cases:
        options = dict(item["options"])
        options.setdefault("flags", ("autoresize",))
        sector, ss = options.get("provider_sector", 512), options.get("sectorsize", 512)
        size = item["size"]
        if size is None:
            stride = ss
            if options.get("aalgo"):
                stride = -(-ss // ((sector - HASHES[options["aalgo"]][2]) // 16 * 16)) * sector
            size = item["sectors"] * stride + sector
        md, volume = new_volume(size, first=components_from_names(item["first"]),
                                second=item["second"] and components_from_names(item["second"]),
                                seed="%s %s" % (args.seed, item["name"]), **options)
        path = os.path.join(args.directory, item["name"] + ".geli")
        with open(path, "w+b") as stream:
            write_image(stream, md, volume, pattern, item["ranges"])
            digest = hashlib.sha256()
            stream.seek(0)
            for block in iter(lambda: stream.read(1 << 20), b""):
                digest.update(block)
        offset, length = item["ranges"][-1] if item["ranges"] else (0, volume.size)
        rows.append((item["name"] + ".geli", digest.hexdigest(), volume.size, "%d:%d" % (offset, length),
                     hashlib.sha256(pattern(offset, length)).hexdigest(), key_arguments(item["first"]),
                     key_arguments(item["second"]) if item["second"] else "-", md.version, md.algorithm, md.keylen,
                     md.aalgo or "-", md.sectorsize, sector, md.iterations, "0x%02x" % md.keys))
    with open(os.path.join(args.directory, "MANIFEST.tsv"), "w") as stream:
        for row in [MANIFEST_COLUMNS] + rows:
            stream.write("\t".join(map(str, row)) + "\n")
    print("%s: %d images" % (args.directory, len(rows)))
    return 0


def read_manifest(directory):
    with open(os.path.join(directory, "MANIFEST.tsv")) as stream:
        lines = [line.rstrip("\n").split("\t") for line in stream]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def command_check(args):
    """Decrypt each image of a matrix with every key it lists; also try a wrong key."""
    failures = skipped = done = 0
    for row in read_manifest(args.directory):
        path = os.path.join(args.directory, row["file"])
        if not os.path.exists(path):
            skipped += 1
            continue
        offset, length = parse_range(row["plain_range"])
        problems = []
        with open(path, "rb") as stream:
            md, sector = Metadata.find(stream)
            for words in (row["key"], row["other_key"]):
                if words == "-":
                    continue
                names = words.split()[1::2]
                try:
                    _, _, master_key = open_volume(md, components_from_names(names))
                    volume = Volume(md, master_key, sector)
                    digest = hashlib.sha256()
                    for part in read_plain(stream, volume, offset, length):
                        digest.update(part)
                    if digest.hexdigest() != row["plain_sha256"] or volume.size != int(row["decrypted_size"]):
                        problems.append("plaintext differs with %s" % words)
                except Trouble as trouble:
                    problems.append("%s with %s" % (trouble, words))
            try:
                open_volume(md, Components([b"no such key"], None))
                problems.append("a wrong key opened it")
            except Trouble:
                pass
        done += 1
        if problems:
            failures += 1
            print("FAIL %s: %s" % (row["file"], "; ".join(problems)))
    print("%d images checked, %d failed, %d absent" % (done, failures, skipped))
    return EXIT_DATA if failures or not done else 0


# -------------------------------------------------------------------------- selftest

def parse_vectors(path):
    """tests/vectors/geli.txt -> list of (name, {key: value}, [data checks])"""
    entries, current, values = [], None, None
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            line = line.rstrip("\n")
            if line.startswith("#") or not line.strip():
                continue
            head = re.match(r"\[(.+)\]$", line)
            where = re.match(r"at offset (\d+): provider_offset = (\d+), length = (\d+)$", line)
            if head:
                current, values = (head.group(1), {}, []), None
                entries.append(current)
            elif where:
                values = {}
                current[2].append((tuple(map(int, where.groups())), values))
            else:
                key, _, value = line.partition(" = ")
                (values if line.startswith(" ") else current[1])[key.strip()] = value
    return entries


def vector_pattern(offset, length):
    return bytes((i + i // 256 + (offset + i) // 512) % 256 for i in range(length))


def check_vector(name, values, data):
    """-> number of things compared; raises AssertionError on the first difference."""
    count = 0
    if "output" in values:                                  # PBKDF2 alone
        got = hashlib.pbkdf2_hmac("sha512", bytes.fromhex(values["passphrase_hex"]), bytes.fromhex(values["salt"]),
                                  int(values["iterations"]), 64)
        assert got.hex() == values["output"], "pbkdf2"
        return 1
    sector = int(values.get("provider_sector", 512))
    if "metadata" in values:
        block = bytes.fromhex(values["metadata"])
        md = Metadata.decode(block)
        assert md.encode() == block, "metadata does not survive a round trip"
        count += 1
    else:
        md = Metadata(version=int(values["version"]), algorithm=ALGORITHM_NAMES[int(values["ealgo"])],
                      keylen=int(values["keylen"]), keys=int(values["keys"], 0),
                      iterations=int(values["iterations"]), salt=bytes.fromhex(values["salt"]),
                      slots=bytes.fromhex(values["slots"]))
    keyfiles = [bytes.fromhex(values[k]) for k in sorted(values) if re.match(r"keyfile\d_hex$", k)]
    if "passphrase_hex" in values:
        passphrase = bytes.fromhex(values["passphrase_hex"])
    else:
        passphrase = values.get("passphrase", "password").encode()
    if values.get("passphrase") == "(none)":
        passphrase = None
    slot, user_key, master_key = open_volume(md, Components(keyfiles, passphrase))
    assert user_key.hex() == values["user_key"], "user key"
    assert master_key.hex() == values["master_key"], "master key"
    before = md.slots
    md.seal(slot, user_key, master_key)
    assert md.slots == before, "slot does not survive a round trip"
    count += 3
    volume = Volume(md, master_key, sector)
    if "mediasize" in values:
        assert volume.size == int(values["mediasize"]), "size"
        count += 1
    for (offset, provider_offset, length), stored in data:
        number = offset // md.sectorsize
        plain = vector_pattern(offset, md.sectorsize)
        sealed = volume.encrypt_sector(number, plain)
        assert volume.provider_offset(number) == provider_offset and len(sealed) == length, "place of %d" % offset
        if "ciphertext" in stored:
            assert sealed.hex() == stored["ciphertext"], "data at %d" % offset
        else:
            assert sealed[:32].hex() == stored["first_32"], "data at %d" % offset
            assert hashlib.sha256(sealed).hexdigest() == stored["sha256"], "data at %d" % offset
        assert volume.decrypt_sector(number, sealed) == (plain, []), "decryption at %d" % offset
        count += 2
    if "ciphertext_sector_0" in values:
        plain, _ = volume.decrypt_sector(0, bytes.fromhex(values["ciphertext_sector_0"]))
        assert plain.hex() == values["plaintext_sector_0"], "sector 0"
        count += 1
    return count


def command_selftest(args):
    failures = 0

    def verdict(name, good):
        nonlocal failures
        failures += not good
        if not good or args.verbose:
            print("%s %s" % ("ok  " if good else "FAIL", name))

    # published answers: AES-XTS (IEEE 1619 vector 1), AES-CBC (NIST SP 800-38A F.2.1)
    got = crypto().run("aes-xts", 128, bytes([0x11] * 16 + [0x22] * 16),
                       b"\x33" * 5 + bytes(11), b"\x44" * 32, 1)
    verdict("aes-xts", got.hex() == "c454185e6a16936e39334038acef838bfb186fff7480adc4289382ecd6d394f0")
    got = crypto().run("aes-cbc", 128, bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"),
                       bytes(range(16)), bytes.fromhex("6bc1bee22e409f96e93d7e117393172a"), 1)
    verdict("aes-cbc", got.hex() == "7649abac8119b246cee98e9b12e9197d")
    # every kind of volume in memory: write, read, damage
    total = 0
    for item in list(standard_cases(False)) + list(random_cases(60, "selftest")):
        options = dict(item["options"])
        sector, ss = options.get("provider_sector", 512), options.get("sectorsize", 512)
        first = components_from_names(item["first"])
        md, volume = new_volume(ss * 8 * 4 + sector, first=first, seed=item["name"], **options)
        image = io.BytesIO()
        plain = pattern(0, volume.size)
        write_image(image, md, volume, lambda o, n: plain[o:o + n])
        found, found_sector = Metadata.find(image)
        again = Volume(found, open_volume(found, first)[2], found_sector)
        good = found_sector == sector and b"".join(read_plain(image, again)) == plain
        if md.auth:                         # one flipped bit in each part must be noticed
            for at in (0, volume.tag, sector + volume.tag + 15):
                image.seek(at)
                byte = image.read(1)[0]
                image.seek(at)
                image.write(bytes([byte ^ 1]))
                bad = []
                b"".join(read_plain(image, again, bad=bad))
                good = good and bad == [at // sector * sector]
                image.seek(at)
                image.write(bytes([byte]))
        total += 1
        verdict("round trip %s" % item["name"], good)
    print("round trips: %d, failures so far: %d" % (total, failures))
    if args.vectors:
        compared = 0
        entries = parse_vectors(args.vectors)
        for name, values, data in entries:
            if int(values.get("iterations", "0")) > 100000 and not args.slow:
                continue
            try:
                compared += check_vector(name, values, data)
                verdict("vector %s" % name, True)
            except (AssertionError, Trouble) as problem:
                verdict("vector %s: %s" % (name, problem), False)
        print("vector file: %d entries, %d comparisons" % (len(entries), compared))
    print("selftest: %s" % ("FAILED (%d)" % failures if failures else "ok"))
    return EXIT_DATA if failures else 0


# ------------------------------------------------------------------------------ main

def command_pattern(args):
    out = sys.stdout.buffer if args.out == "-" else open(args.out, "wb")
    for offset in range(0, args.size, 1 << 20):
        out.write(pattern(offset, min(1 << 20, args.size - offset)))
    out.flush()
    return 0


def build_parser():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name, function, help_text):
        sub = commands.add_parser(name, help=help_text, description=help_text)
        sub.set_defaults(function=function)
        return sub

    def add_keys(sub):
        group = sub.add_argument_group("key material")
        group.add_argument("-k", "--keyfile", action="append", metavar="FILE", help="key file, repeatable, in order")
        group.add_argument("-j", "--passfile", action="append", metavar="FILE",
                           help="file whose first line is the passphrase; repeatable, joined")
        group.add_argument("-p", "--passphrase", metavar="TEXT")

    def add_geometry(sub):
        sub.add_argument("--provider-sector", type=parse_size, metavar="N",
                         help="sector size of the provider (create: default 512; else found out)")
        sub.add_argument("--byte-order", choices=("little", "big"), default="little",
                         help="host order of the machine that made it; matters for version < 4 and for authentication")

    sub = add("create", command_create, "write a GELI image")
    sub.add_argument("image")
    add_keys(sub)
    group = sub.add_argument_group("key material for the other slot")
    group.add_argument("--second-keyfile", action="append", metavar="FILE")
    group.add_argument("--second-passfile", action="append", metavar="FILE")
    group.add_argument("--second-passphrase", metavar="TEXT")
    group = sub.add_argument_group("plaintext (default: the pattern)")
    group.add_argument("--from", dest="source", metavar="RAW", help="file to encrypt, - for standard input; padded with zeros")
    group.add_argument("--zero", action="store_true", help="encrypt zeros")
    group.add_argument("--range", type=parse_range, action="append", metavar="OFFSET:LENGTH",
                       help="encrypt only this decrypted range, leave the rest a hole; repeatable")
    group = sub.add_argument_group("format")
    group.add_argument("--size", type=parse_size, help="provider size (default: fits RAW, else 1M)")
    group.add_argument("-V", "--version", type=int, default=7, metavar="0..7")
    group.add_argument("-e", "--ealgo", metavar="NAME", help=", ".join(ALGORITHMS))
    group.add_argument("-l", "--keylen", type=int, metavar="BITS")
    group.add_argument("-a", "--aalgo", metavar="NAME", help=", ".join(HASHES))
    group.add_argument("-s", "--sectorsize", type=parse_size, default=512, metavar="N")
    group.add_argument("-i", "--iterations", type=int, metavar="N", help="default 10; -1 without a passphrase")
    group.add_argument("--slot", type=int, choices=(0, 1), default=0, help="slot for the first key")
    group.add_argument("--flags", default="autoresize", metavar="LIST", help="comma list of: %s" % ", ".join(FLAG_BITS))
    group.add_argument("--seed", metavar="TEXT", help="reproducible salt and keys")
    group.add_argument("--salt", metavar="HEX", help="exactly this salt (64 bytes)")
    group.add_argument("--master-key", metavar="HEX", help="exactly this master key (128 bytes)")
    group.add_argument("--like", metavar="IMAGE", help="take over metadata and keys of this image")
    add_geometry(sub)
    sub.add_argument("-f", "--force", action="store_true", help="overwrite IMAGE")

    sub = add("extract", command_extract, "decrypt an image")
    sub.add_argument("image")
    add_keys(sub)
    add_geometry(sub)
    sub.add_argument("-n", "--slot", type=int, choices=(0, 1), help="try only this slot")
    sub.add_argument("-o", "--out", default="-", metavar="RAW", help="default: standard output")
    sub.add_argument("--sha256", action="store_true", help="print only hash and length")
    sub.add_argument("--expect", metavar="SHA256", help="exit 1 unless the hash is this one")
    sub.add_argument("--range", type=parse_range, metavar="OFFSET:LENGTH")
    sub.add_argument("--zero-pieces", action="store_true", help="never-written (all-zero) pieces read as zeros")
    sub.add_argument("--keep-going", action="store_true", help="list authentication failures instead of stopping")
    sub.add_argument("--metadata", metavar="FILE", help="take the metadata from a backup file")

    sub = add("info", command_info, "show the metadata")
    sub.add_argument("image")
    add_keys(sub)
    sub.add_argument("--provider-sector", type=parse_size, metavar="N")
    sub.add_argument("-n", "--slot", type=int, choices=(0, 1), help="try only this slot")
    sub.add_argument("--metadata", action="store_true", help="IMAGE is a metadata backup file")
    sub.add_argument("--secrets", action="store_true", help="print user key and master key")
    sub.add_argument("--json", action="store_true")

    sub = add("pattern", command_pattern, "print the default plaintext")
    sub.add_argument("size", type=parse_size)
    sub.add_argument("-o", "--out", default="-", metavar="RAW")

    sub = add("matrix", command_matrix, "write a whole set of images and a manifest")
    sub.add_argument("directory")
    sub.add_argument("--large", action="store_true", help="also sparse images across the key change at 512 MiB")
    sub.add_argument("--key-change", action="store_true", help="only those images")
    sub.add_argument("--random", type=int, metavar="N", help="N random combinations instead of the fixed set")
    sub.add_argument("--every", metavar="I/N", help="every combination, the I-th of N parts of them, instead")
    sub.add_argument("--seed", default="matrix", help="same seed, same bytes (default: matrix)")

    sub = add("check", command_check, "decrypt every image of a set")
    sub.add_argument("directory")

    sub = add("selftest", command_selftest, "known answers and round trips")
    sub.add_argument("vectors", nargs="?", help="tests/vectors/geli.txt")
    sub.add_argument("--slow", action="store_true", help="also vectors with more than 100,000 iterations")
    sub.add_argument("-v", "--verbose", action="store_true")
    return parser


def main():
    args = build_parser().parse_args()
    try:
        return args.function(args)
    except Trouble as trouble:
        print("geli_ref: %s" % trouble, file=sys.stderr)
        return trouble.status
    except BrokenPipeError:
        return EXIT_DATA
    except (OSError, ValueError) as problem:
        print("geli_ref: %s" % problem, file=sys.stderr)
        return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
