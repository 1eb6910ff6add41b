# SPDX-License-Identifier: BSD-2-Clause
"""What measurements need from the machine: the program in a Release build, containers in memory,
mounts, loop devices. Everything is a context, so that all of it is gone afterwards, also after an
error, Ctrl-C or SIGTERM."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
SHM_MOST = 2 << 30  # bytes that all containers may take at once
HEADER = MIB  # of a native container: where its data begins
CPUS = len(os.sched_getaffinity(0))
# AES-NI, PCLMULQDQ, and VAES with VPCLMULQDQ: what OpenSSL then uses is plain vector code.
MASKED = {"OPENSSL_ia32cap": "~0x200000200000000:~0x60000000000"}


class Failed(Exception):
    """A command did not do what it was asked for."""


def run(*words, stdin=None, env=None, timeout=120):
    """A command that has to succeed; its output."""
    try:
        done = subprocess.run([str(w) for w in words], input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=timeout,
                              env={**os.environ, **(env or {})})
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{Path(str(words[0])).name} did not end in {timeout} s") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise Failed(f"{Path(str(words[0])).name} ended with {done.returncode}: "
                     f"{said[-1] if said else 'no message'}")
    return done.stdout


def build():
    """The program and the stream it is timed with, Release, outside the tree of a developer."""
    folder = Path(os.environ.get("BENCH_BUILD", ROOT / "build-bench"))
    run("cmake", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DHUSHVOL_TESTS=OFF")
    run("cmake", "--build", folder, "-j", CPUS, "--target", "hushvol", "bench.io", timeout=900)
    return folder / "hushvol", folder / "bench" / "bench.io"


def programs():
    """HUSHVOL and BENCH_IO name what is measured and what with; what is not named is built."""
    hushvol, io = os.environ.get("HUSHVOL"), os.environ.get("BENCH_IO")
    if hushvol and io:
        return Path(hushvol), Path(io)
    built = build()
    return Path(hushvol or built[0]), Path(io or built[1])


def retry(what, seconds=5.0):
    """Until what() succeeds: an unmount can be early for a moment."""
    end = time.monotonic() + seconds
    while True:
        try:
            return what()
        except Failed:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def end(process, seconds=5.0):
    """A process that we started and that is no longer of use."""
    for stop in (process.terminate, process.kill):
        if process.poll() is None:
            stop()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)


def unmount(program, folder):
    """By force when nothing else helps: a mount namespace of somebody else may have a copy."""
    try:
        retry(lambda: run(program, "umount", folder))
    except Failed:
        run(program, "umount", "--force", folder)


class Mounted:
    def __init__(self, folder, record):
        self.folder = folder
        self.image = folder / "image"
        self.pid = record["pid"]
        self.size = record["size"]

    def memory(self):
        """Resident bytes now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0


class Machine:
    """The program under test and a folder in memory for its containers."""

    def __init__(self, hushvol, io, shm):
        self.hushvol = hushvol
        self.io = io
        self.shm = shm
        self.pids = set()  # daemons that are ours
        self.n = 0
        self.passphrase = shm / "passphrase"
        self.passphrase.touch(mode=0o600)
        self.passphrase.write_text("correct horse battery staple")

    def path(self, name):
        self.n += 1
        return self.shm / f"{self.n}-{name}"

    @contextlib.contextmanager
    def container(self, size, cipher="aes-256-xts", sector=4096, sparse=False, program=None):
        path = self.path(f"{cipher}-{sector}.hv")
        self.check_room(0 if sparse else size)
        words = ["--size", size, "--cipher", cipher, "--sector-size", sector,
                 "--kdf-memory", "64M", "--kdf-iterations", "3",
                 "--passphrase-file", self.passphrase]
        words += ["--sparse"] if sparse else []
        words += ["--insecure-null-cipher"] if cipher == "null" else []
        try:
            run(program or self.hushvol, "create", path, *words)
            yield path
        finally:
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def geli_container(self, size, sector=4096, integrity=None, cipher="aes-xts", bits=256):
        """The same in FreeBSD's format."""
        path = self.path(f"{integrity or cipher}-{sector}.eli")
        self.check_room(size * 5 // 4 if integrity else size)
        words = ["--size", size, "--format", "geli", "--cipher", cipher, "--key-size", bits,
                 "--sector-size", sector, "--kdf-iterations", "1",
                 "--passphrase-file", self.passphrase]
        words += ["--integrity", integrity, "--no-init"] if integrity else []
        try:
            run(self.hushvol, "create", path, *words)
            yield path
        finally:
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def geli(self, size, sector=4096, **more):
        """Such a one mounted, with data in it."""
        with self.geli_container(size, sector, **more) as path, self.mounted(path) as m:
            self.fill(m.image)
            yield m

    def check_room(self, size):
        taken = sum(p.lstat().st_blocks * 512 for p in self.shm.rglob("*") if p.is_file())
        if taken + size > SHM_MOST:
            raise Failed(f"{(taken + size) >> 20} MiB in /dev/shm would be too much")

    @contextlib.contextmanager
    def mounted(self, container, options="", env=None, program=None):
        program = program or self.hushvol
        folder = self.path("mnt")
        folder.mkdir()
        words = ["-o", options] if options else []
        run(program, "mount", container, folder, "--passphrase-file", self.passphrase, *words,
            env=env)
        try:
            mounts = json.loads(run(program, "list", "--json"))
            record = next(r for r in mounts if r["mountpoint"] == str(folder))
            self.pids.add(record["pid"])
            yield Mounted(folder, record)
            self.pids.discard(record["pid"])
        finally:
            unmount(program, folder)
            folder.rmdir()

    @contextlib.contextmanager
    def volume(self, size, options="", env=None, fill=True, **container):
        """A container with data in it, mounted. What was never written would be read without any
        cipher work."""
        program = container.get("program")
        with self.container(size, **container) as path, \
                self.mounted(path, options, env, program) as m:
            m.container = path
            if fill:
                self.fill(m.image)
            yield m

    def fill(self, path):
        run(self.io, path, "op=write", "seconds=0")

    @contextlib.contextmanager
    def background_stream(self, path, **words):
        process = subprocess.Popen([self.io, path, *(f"{k}={v}" for k, v in words.items())],
                                   stdout=subprocess.DEVNULL)
        try:
            yield process
            process.wait(60)
        finally:
            end(process)

    @contextlib.contextmanager
    def filesystem(self, device, options="defaults"):
        """A mount of the kernel's."""
        folder = self.path("fs")
        folder.mkdir()
        run("mount", "-o", options, device, folder)
        try:
            yield folder
        finally:
            retry(lambda: run("umount", folder))
            folder.rmdir()

    @contextlib.contextmanager
    def loop(self, image):
        """As "attach" sets it up: direct I/O, blocks of 4096 bytes."""
        device = run("losetup", "--direct-io=on", "--sector-size", "4096", "--find", "--show",
                     image).strip()
        backing = Path("/sys/block", Path(device).name, "loop/backing_file")
        try:
            yield Path(device)
        finally:
            retry(lambda: run("losetup", "-d", device))
            for _ in range(100):  # the kernel lets go when the last opener does
                if not backing.exists():
                    break
                time.sleep(0.05)


def interrupted(*_):
    raise KeyboardInterrupt


@contextlib.contextmanager
def machine():
    signal.signal(signal.SIGTERM, interrupted)
    hushvol, io = programs()
    shm = Path(tempfile.mkdtemp(prefix="hushvol-bench-", dir="/dev/shm"))
    try:
        yield Machine(hushvol.resolve(), io.resolve(), shm)
    finally:
        shutil.rmtree(shm, ignore_errors=True)


def why_not():
    """Why nothing can be measured here, or None."""
    if os.geteuid() != 0:
        return "needs root, for loop devices"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "needs /dev/fuse"
    if not os.access("/dev/loop-control", os.R_OK):
        return "needs /dev/loop-control"
    return None
