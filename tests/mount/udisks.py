# SPDX-License-Identifier: BSD-2-Clause
"""A stand-in for udisks2, which needs a message bus, polkit and udev: a command udisksctl for the
user's PATH, and behind it a thread of the test, root in mounts of its own, that really sets up loop
devices and mounts. The words it takes and says are those of udisks2 2.9."""

import json
import os
import socketserver
import subprocess
import sys
import threading

CLIENT = """#!/usr/bin/python3 -B
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect({path!r})
s.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
status, out, err = json.loads(s.makefile().readline())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(status)
"""

REFUSED = "GDBus.Error:org.freedesktop.UDisks2.Error.NotAuthorizedCanObtain: " \
    "Not authorized to perform operation"
WITH_VALUE = {"--file", "--offset", "--size", "--block-device", "-o"}


class Udisks:
    def __init__(self, box, user, folder):
        """folder takes the place of /media/USER."""
        self.box, self.user, self.folder = box, user, folder
        self.calls, self.refuse, self.not_yet = [], {}, 0
        path = os.path.join(box.folder("udisks", mode=0o755), "socket")
        self.bin = box.folder("udisks/bin")
        with open(f"{self.bin}/udisksctl", "w", encoding="ascii") as f:
            f.write(CLIENT.format(path=path))
        os.chmod(f.name, 0o755)
        self.env = {"PATH": f"{self.bin}:{os.environ['PATH']}:/usr/sbin:/sbin"}
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                try:
                    answer = outer.answer(json.loads(self.rfile.readline()))
                except subprocess.CalledProcessError as e:
                    answer = 1, "", e.stderr.decode(errors="replace")
                self.wfile.write(json.dumps(answer).encode() + b"\n")

        self.server = socketserver.ThreadingUnixStreamServer(path, Handler)
        self.server.daemon_threads = True
        os.chmod(path, 0o777)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def verbs(self):
        return [c[0] for c in self.calls]

    def answer(self, words):
        self.calls.append(words)
        verb, given, i = words[0], {}, 1
        while i < len(words):
            takes = words[i] in WITH_VALUE
            given[words[i]] = words[i + 1] if takes else True
            i += 2 if takes else 1
        if verb != "status" and "--no-user-interaction" not in given:
            return 1, "", "it would ask a person\n"
        if verb in self.refuse:
            return 1, "", f"Error creating textual authentication agent\n{self.refuse[verb]}\n"
        return getattr(self, verb.replace("-", "_"))(given)

    def root(self, *words):
        return subprocess.run(words, check=True, capture_output=True).stdout.decode().strip()

    def status(self, _given):
        return 0, "MODEL  REVISION  SERIAL  DEVICE\n", ""

    def loop_setup(self, given):
        words = ["--read-only"] if "--read-only" in given else []
        for name, option in (("--offset", "--offset"), ("--size", "--sizelimit")):
            if name in given:
                words += [option, given[name]]
        device = self.root("losetup", "--find", "--show", *words, given["--file"])
        return 0, f"Mapped file {given['--file']} as {device}.\n", ""

    def mount(self, given):
        device = given["--block-device"]
        if self.not_yet > 0:
            self.not_yet -= 1
            return 1, "", f"Object /org/freedesktop/UDisks2/block_devices/{device[5:]} is not a " \
                "mountable filesystem.\n"
        point = os.path.join(self.folder, f"disk-{device[9:]}")
        os.makedirs(point)
        options = "nosuid,nodev" + ("," + given["-o"] if "-o" in given else "")
        try:
            self.root("mount", "-o", options, device, point)
        except subprocess.CalledProcessError:
            os.rmdir(point)
            raise
        return 0, f"Mounted {device} at {point}\n", ""

    def unmount(self, given):
        device = given["--block-device"]
        point = self.root("findmnt", "-n", "-o", "TARGET", device)
        try:
            self.root("umount", *(["-l"] if "--force" in given else []), point)
        except subprocess.CalledProcessError as e:
            return 1, "", f"Error unmounting {device}: GDBus.Error:org.freedesktop.UDisks2.Error." \
                f"DeviceBusy: {e.stderr.decode()}"
        os.rmdir(point)
        return 0, f"Unmounted {device}.\n", ""

    def loop_delete(self, given):
        self.root("losetup", "--detach", given["--block-device"])
        return 0, "", ""
