# SPDX-License-Identifier: BSD-2-Clause
"""Other programs that show a decrypted file through FUSE, beside ours, on the same machine in the
same minute. Each peer is set up as its manual has it, with cheap key derivation, its ciphertext in
memory and its AES cipher where it has a choice; a file in it is filled and then read and written
as our image is. A peer that cannot run a row is shown as such."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import Callable

from machine import Failed, end, retry, run
from measure import WORKLOADS, Row, pair_row

# what a peer is asked to run, and the target; qemu's are its own
TARGETS = {
    "read 1 MiB": "> 1.00", "read 128 KiB": "> 1.00", "read 16 KiB": "> 1.00",
    "write 1 MiB": "> 1.00", "random read 4 KiB": "> 1.00", "random write 4 KiB": "> 1.00",
    "loop read 16 x 1 MiB": "> 1.00", "loop write 16 x 1 MiB": "> 1.00",
    "loop random read 32 x 4 KiB": "> 1.00", "loop random write 32 x 4 KiB": "> 1.00",
}
QEMU_TARGETS = {**TARGETS, "read 1 MiB": ">= 8.00", "write 1 MiB": ">= 4.00"}
FEW = ("read 1 MiB", "write 1 MiB")
PAIRS = 5


@dataclass
class Peer:
    name: str
    packages: str
    programs: str
    opened: Callable  # context of (meter, folder, size): the file in it
    targets: dict
    slow_start: bool = False


@contextlib.contextmanager
def started(*words, ready, stdin=None, env=None, seconds=90):
    """A peer in the foreground, once ready() is true."""
    said = tempfile.TemporaryFile("w+")
    process = subprocess.Popen([str(w) for w in words], text=True, start_new_session=True,
                               stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=said,
                               env={**os.environ, **(env or {})})
    try:
        if stdin:
            process.stdin.write(stdin)
            process.stdin.close()
        give_up = time.monotonic() + seconds
        while not ready():
            if process.poll() is not None:
                said.seek(0)
                raise Failed(f"{words[0]} ended with {process.returncode}: "
                             + said.read().strip()[-200:])
            if time.monotonic() > give_up:
                raise Failed(f"{words[0]} did not become ready")
            time.sleep(0.05)
        yield process
    finally:
        end(process)
        said.close()


@contextlib.contextmanager
def mounted(meter, folder, size, *words, **how):
    """A file system of a peer, with a file of that size in it."""
    mount = folder / "mnt"
    mount.mkdir()
    try:
        with started(*words, ready=lambda: os.path.ismount(mount), **how) as process, \
                counted(meter, process):
            image = mount / "image"
            with open(image, "wb") as f:
                os.truncate(f.fileno(), size)
            try:
                yield image
            finally:
                retry(lambda: unmount(mount))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
    finally:
        if os.path.ismount(mount):
            retry(lambda: unmount(mount))


def unmount(mount):
    if os.path.ismount(mount):
        run("umount", mount)


@contextlib.contextmanager
def counted(meter, process):
    """Its work is part of what is measured, not of what disturbs."""
    meter.machine.pids.add(process.pid)
    try:
        yield
    finally:
        meter.machine.pids.discard(process.pid)


def luks(meter, folder, size):
    secret = f"secret,id=s,file={meter.machine.passphrase}"
    container = folder / "container.luks"
    # It times its key derivation, and gives up when the machine is busy.
    retry(lambda: run("qemu-img", "create", "-q", "-f", "luks", "--object", secret,
                      "-o", "key-secret=s,iter-time=10,cipher-alg=aes-256,cipher-mode=xts",
                      container, size))
    return secret, container


@contextlib.contextmanager
def qemu(meter, folder, size):
    secret, container = luks(meter, folder, size)
    image = folder / "image"
    image.touch()
    with started("qemu-storage-daemon", "--object", secret,
                 "--blockdev", f"driver=file,node-name=f,filename={container}",
                 "--blockdev", "driver=luks,node-name=l,file=f,key-secret=s",
                 "--export", f"type=fuse,id=e,node-name=l,mountpoint={image},writable=on",
                 ready=lambda: image.stat().st_size == size) as process, \
            counted(meter, process):
        yield image


@contextlib.contextmanager
def nbdkit(meter, folder, size):
    _, container = luks(meter, folder, size)
    socket, mount = folder / "socket", folder / "mnt"
    mount.mkdir()
    image = mount / "nbd"
    with started("nbdkit", "-f", "-U", socket, "--filter=luks", "file", container,
                 f"passphrase=+{meter.machine.passphrase}", ready=socket.exists) as server, \
            counted(meter, server), \
            started("nbdfuse", mount, "--unix", socket, ready=image.exists) as fuse, \
            counted(meter, fuse):
        try:
            yield image
        finally:
            retry(lambda: unmount(mount))


@contextlib.contextmanager
def gocryptfs(meter, folder, size):
    cipher, word = folder / "cipher", meter.machine.passphrase
    cipher.mkdir()
    run("gocryptfs", "-init", "-q", "-scryptn", "10", "-passfile", word, cipher)
    with mounted(meter, folder, size, "gocryptfs", "-q", "-fg", "-passfile", word, cipher,
                 folder / "mnt") as image:
        yield image


@contextlib.contextmanager
def securefs(meter, folder, size):
    cipher, word = folder / "cipher", meter.machine.passphrase
    cipher.mkdir()
    run("securefs", "create", "--keyfile", word, "-r", "1", cipher)
    with mounted(meter, folder, size, "securefs", "mount", "--keyfile", word, cipher,
                 folder / "mnt") as image:
        yield image


@contextlib.contextmanager
def cryfs(meter, folder, size):
    cipher = folder / "cipher"
    cipher.mkdir()
    env = {"CRYFS_FRONTEND": "noninteractive", "CRYFS_NO_UPDATE_CHECK": "true",
           "CRYFS_LOCAL_STATE_DIR": str(folder / "state")}
    with mounted(meter, folder, size, "cryfs", "--cipher", "aes-256-gcm", "-f", cipher,
                 folder / "mnt", stdin=meter.machine.passphrase.read_text() + "\n",
                 env=env) as image:
        yield image


@contextlib.contextmanager
def encfs(meter, folder, size):
    cipher = folder / "cipher"
    cipher.mkdir()
    with mounted(meter, folder, size, "encfs", "-f", "--standard",
                 f"--extpass=cat {meter.machine.passphrase}", cipher, folder / "mnt") as image:
        yield image


PEERS = [
    Peer("qemu", "qemu-system-common qemu-utils", "qemu-storage-daemon qemu-img", qemu,
         QEMU_TARGETS),
    Peer("nbdkit", "nbdkit libnbd-bin qemu-utils", "nbdkit nbdfuse qemu-img", nbdkit,
         TARGETS),
    Peer("gocryptfs", "gocryptfs", "gocryptfs", gocryptfs, TARGETS),
    Peer("securefs", "securefs", "securefs", securefs, TARGETS),
    Peer("cryfs", "cryfs", "cryfs", cryfs, TARGETS, slow_start=True),
    Peer("encfs", "encfs", "encfs", encfs, TARGETS),
]


def missing(peer):
    return [p for p in peer.programs.split() if shutil.which(p) is None]


def install():
    """What is missing of all peers, in one go. What cannot be had is left out later."""
    packages = sorted({p for peer in PEERS if missing(peer) for p in peer.packages.split()})
    if packages:
        with contextlib.suppress(Failed, subprocess.TimeoutExpired):
            run("apt-get", "install", "-y", "--no-install-recommends", *packages, timeout=600,
                env={"DEBIAN_FRONTEND": "noninteractive"})


def check_direct(image):
    """Some cannot be opened with O_DIRECT; those would answer from the kernel's page cache."""
    try:
        os.close(os.open(image, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        raise Failed(f"its files cannot be opened with O_DIRECT: {error.strerror}") from error


def peer_row(meter, peer, name, target, ours, theirs):
    """One row; theirs and ours are (image, loop device or None)."""
    words, through_loop = WORKLOADS[name]
    title = f"{name} / {peer.name}"
    if through_loop and theirs[1] is None:
        return Row(title, target=target, how="a loop device on it cannot be set up")
    at = 1 if through_loop else 0
    try:
        found, busy = meter.rounds({"ours": lambda: meter.stream(ours[at], **words),
                                    "other": lambda: meter.stream(theirs[at], **words)},
                                   min(PAIRS, meter.scale.pairs))
    except Failed as error:
        return Row(title, target=target, how=str(error))
    return pair_row(title, target, found, busy, peer.name)


def loop_or_none(meter, stack, image):
    with contextlib.suppress(Failed):
        return stack.enter_context(meter.machine.loop(image))
    return None


def peer_rows(meter, peer, names):
    size = meter.scale.size // 2
    folder = meter.machine.path(peer.name)
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        theirs = stack.enter_context(peer.opened(meter, folder, size))
        check_direct(theirs)
        meter.machine.fill(theirs)
        ours = stack.enter_context(meter.machine.volume(size)).image
        devices = [None, None]
        if any(WORKLOADS[name][1] for name in names):
            devices = [loop_or_none(meter, stack, image) for image in (ours, theirs)]
        for name in names:
            yield peer_row(meter, peer, name, peer.targets[name], (ours, devices[0]),
                           (theirs, devices[1]))


def rows_of(meter, may_install, few):
    if may_install:
        install()
    for peer in PEERS:
        names = FEW if few else tuple(peer.targets)
        title = f"{' and '.join(FEW) if few else 'every row'} / {peer.name}"
        if missing(peer):
            yield Row(title, how=f"{' '.join(missing(peer))} not found (packages "
                                 f"{peer.packages})")
        elif few and peer.slow_start:
            yield Row(title, how="left out by --quick: it takes many seconds to start")
        else:
            try:
                yield from peer_rows(meter, peer, names)
            except (Failed, OSError) as error:
                yield Row(title, how=str(error))
