# SPDX-License-Identifier: BSD-2-Clause
"""What the whole-program tests share: a box per test.

A box is a temporary folder, a passphrase file, and everything that a test started or mounted from
there. When a test ends well the box must be empty: a mount, a loop device or a process that is
still there is a failure of its own. When it ends badly the box is emptied by force, by process id
and by path, so that one failure does not spoil the tests after it.

Every process started from a box carries HUSHVOL_TEST_BOX in its environment, and so do daemons and
helpers that it leaves: that is how they are found again without asking the program under test.

Environment: HUSHVOL the program; HUSHVOL_TEST_SCALE full, small or soak; HUSHVOL_TEST_USER the
unprivileged user that root runs tests as; HUSHVOL_SANITIZE makes time-outs longer;
HUSHVOL_SEED repeats a random run; HUSHVOL_TEST_MOUNTS a mount namespace without any of ours.
"""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import pty
import pwd
import random
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
import types

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
HUSHVOL = os.path.abspath(os.environ.get("HUSHVOL", os.path.join(TOP, "build", "hushvol")))
GELI_REF = os.path.join(TOP, "tests", "vectors", "geli_ref.py")
FIXTURES = os.environ.get("HUSHVOL_FIXTURES", os.path.join(TOP, "..", "shared", "fixtures"))
SCALE = os.environ.get("HUSHVOL_TEST_SCALE", "full")
SANITIZED = bool(os.environ.get("HUSHVOL_SANITIZE"))
SLOW = 4 if SANITIZED else 1
SEED = int(os.environ.get("HUSHVOL_SEED", str(time.time_ns() & 0xFFFFFFFF)))
ROOT = os.geteuid() == 0
NOBODY = 65534
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
CHEAP_KDF = ["--kdf-memory", "64M", "--kdf-iterations", "3"]

# What other tests that run at the same time can be the reason of.
OF_OTHERS = ("cannot check mount status", "still mounted in another mount namespace",
             "busy: /dev/loop")

# Exit statuses, as the README lists them.
DONE, FAILED, USAGE, NO_KEY, DAMAGED, BUSY, UNSUPPORTED, NOT_THERE = range(8)

FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE = 1, 2, 16
_libc = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """A fact that does not hold."""


class Skip(Exception):
    """This test has nothing to run on here."""


class Absent(Exception):
    """What other programs made is not on this machine: said, and no gap in a run that lacks it."""


class PlainOnly(Exception):
    """A sanitizer stands in the way; the plain build, which every run has, shows this fact."""


def small():
    return SCALE == "small"


def scaled(full, little, soak=None):
    """The figure for this run's scale."""
    if SCALE == "soak" and soak is not None:
        return soak
    return little if small() else full


def check(fact, words):
    if not fact:
        raise Failure(words)


def equal(got, want, words):
    if got != want:
        raise Failure(f"{words}: {got!r} instead of {want!r}")


def note(words):
    print("     ", words, flush=True)


def needs_root():
    if not ROOT:
        raise Skip("needs root")


def needs_tool(*names):
    for name in names:
        if find_tool(name) is None:
            raise Skip(f"{name} is not installed")


def find_tool(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while chunk := f.read(MIB):
            h.update(chunk)
    return h.hexdigest()


def random_bytes(n, seed):
    return random.Random(seed).randbytes(n)


def allocated(path):
    """Bytes that the host's file system gave to a file."""
    return os.stat(path).st_blocks * 512


def fallocate(fd, mode, off, length):
    r = _libc.fallocate(ctypes.c_int(fd), ctypes.c_int(mode), ctypes.c_long(off),
                        ctypes.c_long(length))
    if r != 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def punch(fd, off, length):
    fallocate(fd, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, off, length)


def zero_range(fd, off, length):
    fallocate(fd, FALLOC_ZERO_RANGE | FALLOC_KEEP_SIZE, off, length)


def pread_all(fd, length, off):
    parts = []
    while length > 0:
        part = os.pread(fd, length, off)
        if not part:
            break
        parts.append(part)
        off += len(part)
        length -= len(part)
    return b"".join(parts)


def pwrite_all(fd, data, off):
    view = memoryview(data)
    while view:
        n = os.pwrite(fd, view, off)
        view = view[n:]
        off += n


def write_file(path, data, mode=0o644):
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)
    return path


def mounts_below(folder):
    """Mount points at or below folder, the last one mounted first."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            point = line.split()[4].encode().decode("unicode_escape")
            if point == folder or point.startswith(folder + "/"):
                found.append(point)
    return found[::-1]


def is_mounted(point):
    return point in mounts_below(point)


def loops_of(folder):
    """Loop devices whose backing file lies below folder."""
    found = []
    for name in os.listdir("/sys/block"):
        try:
            with open(f"/sys/block/{name}/loop/backing_file", encoding="utf-8") as f:
                backing = f.read().rstrip("\n")
        except OSError:
            continue
        if backing.startswith(folder + "/"):
            found.append("/dev/" + name)
    return found


def processes_marked(box_dir):
    """Process ids, apart from this one, whose environment names this box (what may be read)."""
    mark = b"HUSHVOL_TEST_BOX=" + box_dir.encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as f:
                if mark in f.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue
    return found


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "?"


def alive(pid):
    """Any thread of it: the first one may have ended while others still have its locks."""
    try:
        if len(os.listdir(f"/proc/{pid}/task")) > 1:
            return True
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def unique(stem):
    """A volume's name that no test beside this one uses."""
    return f"{stem}-{os.getpid()}"


def wait_for(fact, seconds, words):
    """Wait until fact() is true; the value it had."""
    end = time.monotonic() + seconds * SLOW
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"not within {seconds * SLOW} s: {words}")
        time.sleep(0.02)


class User:
    """Who runs a command."""

    def __init__(self, uid, gid, name):
        self.uid, self.gid, self.name = uid, gid, name


def me():
    return User(os.geteuid(), os.getegid(), "root" if ROOT else str(os.geteuid()))


def plain_user():
    """An unprivileged user: the one that tests/run made, or ourselves when we are not root."""
    if not ROOT:
        return me()
    name = os.environ.get("HUSHVOL_TEST_USER")
    if not name:
        raise Skip("root needs HUSHVOL_TEST_USER (tests/run makes one)")
    entry = pwd.getpwnam(name)
    return User(entry.pw_uid, entry.pw_gid, name)


class Mount:
    """One mounted volume."""

    def __init__(self, box, container, folder, user):
        self.box, self.container, self.dir, self.user = box, container, folder, user

    @property
    def image(self):
        return os.path.join(self.dir, "image")

    @property
    def stats(self):
        with open(os.path.join(self.dir, "stats"), encoding="utf-8") as f:
            return json.load(f)

    def info(self):
        return self.box.volume(self.container, user=self.user)

    def umount(self, expect=DONE, by=None):
        return self.box.hv("umount", by or self.dir, user=self.user, expect=expect)


class Box:
    def __init__(self):
        self.dir = None
        self.children = []
        self.made = 0
        self.program = HUSHVOL

    def __enter__(self):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="hushvol-box."))
        os.chmod(self.dir, 0o755)
        self.passphrase = b"correct horse battery staple"
        self.pw = self.secret_file("passphrase", self.passphrase + b"\n")
        self.wrong = self.secret_file("wrong", b"not the passphrase\n")
        return self

    def __exit__(self, kind, value, trace):
        left = self.empty()
        shutil.rmtree(self.dir, ignore_errors=True)
        if kind is None and left:
            raise Failure("left behind: " + ", ".join(left))
        return False

    # -- files ---------------------------------------------------------------------------------

    def path(self, name):
        return os.path.join(self.dir, name)

    def secret_file(self, name, data, user=None):
        path = write_file(self.path(name), data, 0o600)
        if user is not None:
            os.chown(path, user.uid, user.gid)
        return path

    def folder(self, name=None, user=None, mode=0o755):
        if name is None:
            self.made += 1
            name = f"dir{self.made}"
        path = self.path(name)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
        if user is not None:
            os.chown(path, user.uid, user.gid)
        return path

    # -- processes -----------------------------------------------------------------------------

    def environment(self, user, extra=None):
        env = dict(os.environ)
        env["HUSHVOL_TEST_BOX"] = self.dir
        env["PATH"] = env.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
        if user is not None and user.uid != os.geteuid():
            for name in ("XDG_RUNTIME_DIR", "SUDO_USER", "MAIL"):
                env.pop(name, None)
            env.update(HOME=self.dir, USER=user.name, LOGNAME=user.name)
        env.update(extra or {})
        return env

    def _as(self, user):
        if user is None or user.uid == os.geteuid():
            return {}
        return {"user": user.uid, "group": user.gid, "extra_groups": []}

    def run(self, *command, expect=0, **more):
        """Run to the end; stdout and stderr are kept. expect: a status, several, or None for any.

        mkfs.btrfs looks behind every mount and loop device of the machine, and fails when it may not see
        one, which another test has at the moment; and what is to be unmounted is for a moment also in the
        mount namespace that another test makes: then once more, a little later."""
        command = [str(c) for c in command]
        allowed = expect if isinstance(expect, (tuple, list, set)) else (expect,)
        for _ in range(40):
            done = self._run(command, **more)
            as_expected = expect is None or done.returncode in allowed
            if as_expected or not any(words in done.err for words in OF_OTHERS):
                break
            time.sleep(0.5)
        if not as_expected:
            raise Failure(f"{' '.join(command)}: status {done.returncode} instead of {expect}\n"
                          f"{done.out}{done.err}".rstrip())
        return done

    def _run(self, command, user=None, timeout=120, input=None, env=None, cwd=None):
        try:
            done = subprocess.run(command, env=self.environment(user, env), timeout=timeout * SLOW,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, input=input,
                                  stdin=None if input is not None else subprocess.DEVNULL,
                                  start_new_session=True, cwd=cwd or self.dir, **self._as(user))
        except subprocess.TimeoutExpired as e:
            raise Failure(f"{' '.join(command)}: still running after {timeout * SLOW} s\n"
                          f"{(e.stdout or b'').decode(errors='replace')}"
                          f"{(e.stderr or b'').decode(errors='replace')}") from None
        done.out = done.stdout.decode(errors="replace")
        done.err = done.stderr.decode(errors="replace")
        return done

    def spawn(self, *command, user=None, **more):
        """Start and go on; the box ends it when the test does not."""
        more.setdefault("stdout", subprocess.DEVNULL)
        more.setdefault("stderr", subprocess.DEVNULL)
        child = subprocess.Popen([str(c) for c in command], env=self.environment(user),
                                 start_new_session=True, cwd=self.dir, **self._as(user), **more)
        self.children.append(child)
        return child

    def program_for(self, user):
        """The program where user can run it: the tree may be closed to others."""
        if user is None or user.uid == os.geteuid():
            return self.program
        copy = self.path("bin/hushvol")
        if not os.path.exists(copy):
            self.folder("bin")
            shutil.copy(self.program, copy)
            os.chmod(copy, 0o755)
        return copy

    def hv(self, *words, user=None, **more):
        return self.run(self.program_for(user), *words, user=user, **more)

    def hv_typed(self, *words, typed=(), expect=DONE):
        """On a terminal: each pair of typed is what to wait for and what to type then. What was
        shown."""
        shown, pending, mark = "", list(typed), 0
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(self.program, [self.program, *map(str, words)], self.environment(None))
        end = time.monotonic() + 60 * SLOW
        while time.monotonic() < end:
            if pending and pending[0][0] in shown[mark:]:
                mark = len(shown)
                os.write(fd, pending.pop(0)[1].encode())
            if not select.select([fd], [], [], 1)[0]:
                continue
            try:
                data = os.read(fd, 4096)
            except OSError:  # it has ended
                break
            if not data:
                break
            shown += data.decode(errors="replace")
        os.close(fd)  # which ends it if it has not
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        check(not pending and status == expect,
              f"{words}: status {status} instead of {expect}, not asked: {pending}\n{shown}")
        return shown

    # -- volumes -------------------------------------------------------------------------------

    def container(self, name="c.hv", size="16M", *words, user=None, expect=DONE, sector=None,
                  sparse=False, pw=None, timeout=120):
        path = name if os.path.isabs(name) else self.path(name)
        options = ["--passphrase-file", pw or self.pw, *CHEAP_KDF]
        if size is not None:
            options += ["--size", str(size)]
        if sector is not None:
            options += ["--sector-size", str(sector)]
        if sparse:
            options.append("--sparse")
        self.hv("create", path, *options, *words, user=user, expect=expect, timeout=timeout)
        return path

    def geli(self, name, disk, *words, sector=512, source=None, passes=None):
        """A GELI container that the reference writer made, its disk of zeros or what source holds."""
        plain = source or self.path(name + ".plain")
        if source is None:
            with open(plain, "wb") as f:
                f.truncate(disk)
        self.run("/usr/bin/python3", "-B", GELI_REF, "create", "-j", passes or self.pw, "-s", sector,
                 "--from", plain, *words, self.path(name), timeout=300)
        if source is None:
            os.unlink(plain)
        return self.path(name)

    def geli_read(self, container, out, *words, passes=None):
        """The whole disk as the reference reader sees it."""
        self.run("/usr/bin/python3", "-B", GELI_REF, "extract", "-j", passes or self.pw, "-o", out,
                 *words, container, timeout=300)
        return out

    def try_mount(self, container, folder=None, *words, user=None, o=None, pw=None, expect=DONE,
                  timeout=60):
        options = ["--passphrase-file", pw or self.pw]
        if o:
            options += ["-o", o]
        where = [] if folder is None else [folder]
        return self.hv("mount", container, *where, *options, *words, user=user, expect=expect,
                       timeout=timeout)

    def mount(self, container, folder=None, *words, user=None, **more):
        folder = folder or self.folder(user=user)
        self.try_mount(container, folder, *words, user=user, **more)
        return Mount(self, container, folder, user)

    @contextlib.contextmanager
    def mounted(self, container, *words, **more):
        m = self.mount(container, None, *words, **more)
        yield m
        m.umount()

    def attach(self, container, folder=None, *words, user=None, o=None, pw=None, expect=DONE,
               timeout=120):
        folder = folder or self.folder(user=user)
        options = ["--passphrase-file", pw or self.pw]
        if o:
            options += ["-o", o]
        self.hv("attach", container, folder, *options, *words, user=user, expect=expect,
                timeout=timeout)
        return folder

    def detach(self, folder, user=None, expect=DONE, timeout=120):
        return self.hv("detach", folder, user=user, expect=expect, timeout=timeout)

    def volumes(self, user=None):
        return json.loads(self.hv("list", "--json", user=user).out)

    def volume(self, container, user=None):
        found = [v for v in self.volumes(user) if v["container"] == container]
        return found[0] if found else None

    @contextlib.contextmanager
    def loop(self, backing, *words):
        """A loop device over backing."""
        device = self.run("losetup", "--find", "--show", *words, backing).out.strip()
        yield device
        self.run("losetup", "--detach", device)
        wait_for(lambda: device not in loops_of(self.dir), 10, f"{device} is free again")

    # -- the end -------------------------------------------------------------------------------

    def empty(self):
        """Take away what is still there, by force; the list of what that was."""
        left = []
        for child in self.children:
            if child.poll() is None:
                left.append(f"process {child.args[0]}")
                child.kill()
            child.wait()
        for device in self._remaining_loops():
            left.append(f"loop device {device}")
        for point in self._remaining_mounts():
            left.append(f"mount {point}")
            command = ["umount", "-l", point] if ROOT else ["fusermount3", "-uz", point]
            subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
        for device in loops_of(self.dir):
            if ROOT:
                subprocess.run(["losetup", "-d", device], check=False)
        for pid in self._remaining_processes():
            left.append(f"process {pid} ({command_of(pid)})")
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return left

    def _patiently(self, find):
        """What find() still finds after the time that an orderly end may take."""
        end = time.monotonic() + 5 * SLOW
        while (found := find()) and time.monotonic() < end:
            time.sleep(0.05)
        return found

    def _remaining_loops(self):
        return self._patiently(lambda: loops_of(self.dir))

    def _remaining_mounts(self):
        return self._patiently(lambda: mounts_below(self.dir))

    def _remaining_processes(self):
        return self._patiently(lambda: [p for p in processes_marked(self.dir) if alive(p)])


def own_mounts(box, *command):
    """This command in a mount namespace of its own. Of volumes and loop devices only the box's come
    along: a copy of another test's mount would keep its daemon from ending."""
    drop = r"""awk -v box="$0/" '($3 ~ /^fuse/ || $1 ~ /^.dev.loop/) && index($2, box) != 1 {print $2}' \
    /proc/self/mounts | tac | while read -r p; do umount -l "$(printf %b "$p")"; done
exec "$@" """
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", drop, box.dir, *command]


def fresh_mounts(box, *command):
    """The same without any: made from a namespace that tests/run made before there were tests, so that
    not even for a moment there are copies of what other tests have mounted."""
    origin = os.environ.get("HUSHVOL_TEST_MOUNTS")
    if origin is None:
        return own_mounts(box, *command)
    return ["nsenter", f"--mount={origin}", "unshare", "--mount", "--propagation", "private", "sh",
            "-c", 'cd "$0" && exec "$@"', os.getcwd(), *command]


def in_own_mounts(test):
    """Run a test, as root, by a process of its own whose mounts nobody else sees."""
    def outer(box):
        needs_root()
        if os.environ.get("HUSHVOL_TEST_INNER") == test.__name__:
            test(box)
            return
        done = box.run(*fresh_mounts(box, os.path.abspath(sys.argv[0]), test.__name__), expect=None,
                       env={"HUSHVOL_TEST_INNER": test.__name__}, timeout=240)
        check(done.returncode == 0, done.out + done.err)
    outer.__name__ = test.__name__
    return outer


OWN_RUNTIME = r"""mount -t tmpfs -o size=4m tmpfs /run && mkdir -p -m 700 "$0" && chown "$1" "$0" &&
mount -t tmpfs -o "uid=$1,mode=700,size=4m" tmpfs "$0" && shift && exec "$@" """


def enter_own_mounts():
    """Before main(): for commands that look at every volume. As root, all tests of this program go on in
    one mount namespace, with /run and the plain user's runtime folder of its own."""
    if not ROOT or "HUSHVOL_TEST_OWN" in os.environ or "HUSHVOL_TEST_USER" not in os.environ:
        return
    uid = str(plain_user().uid)
    os.environ["HUSHVOL_TEST_OWN"] = uid
    command = fresh_mounts(types.SimpleNamespace(dir="/nowhere"), "sh", "-c", OWN_RUNTIME,
                           f"/tmp/hushvol-{uid}", uid, os.path.abspath(sys.argv[0]), *sys.argv[1:])
    os.execvp(command[0], command)


def _stop(signum, _frame):
    raise Failure(f"stopped by {signal.Signals(signum).name}")


def main(*tests):
    """Run the tests that the command line names, or all. Ends the process."""
    wanted = sys.argv[1:]
    counts = {"ok": 0, "FAILED": 0, "SKIPPED": 0, "ABSENT": 0}
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(s, _stop)
    if not os.access(HUSHVOL, os.X_OK):
        sys.exit(f"{HUSHVOL} is not there: build it, or name it in HUSHVOL")
    if not ROOT and not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("SKIPPED all: /dev/fuse is closed to this user")
        sys.exit(77)
    print(f"{os.path.basename(sys.argv[0])}: {HUSHVOL}, scale {SCALE}, HUSHVOL_SEED={SEED}")
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        start = time.monotonic()
        result, why = "ok", ""
        signal.alarm(scaled(300, 150, 36000) * SLOW)
        try:
            with Box() as box:
                test(box)
        except PlainOnly as e:
            why = f"{e}, the plain build shows it"
        except Absent as e:
            result, why = "ABSENT", str(e)
        except Skip as e:
            result, why = "SKIPPED", str(e)
        except Failure as e:
            line = traceback.extract_tb(e.__traceback__)
            result, why = "FAILED", f"{e} (line {next(t.lineno for t in line if t.name == test.__name__)})" \
                if any(t.name == test.__name__ for t in line) else str(e)
        except Exception:
            result, why = "FAILED", traceback.format_exc()
        signal.alarm(0)
        counts[result] += 1
        took = time.monotonic() - start
        print(f"{result:7} {test.__name__} ({took:.1f} s){': ' if why else ''}{why}", flush=True)
    if wanted and sum(counts.values()) == 0:
        print("no such test:", *wanted)
        sys.exit(2)
    if counts["FAILED"]:
        sys.exit(1)
    sys.exit(77 if counts["ok"] == 0 else 0)
