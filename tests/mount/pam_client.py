# SPDX-License-Identifier: BSD-2-Clause
"""A program that logs somebody in: a PAM client for tests, one process for one handle.

    pam_client.py SERVICE USER

Each line of its input is a JSON object: {"call": "authenticate", "flags": 0, "answers": ["typed"]},
or {"call": "set_item", "which": 8, "value": "root"}. For each it prints {"result": N, "heard":
[[STYLE, TEXT], ...]}: what PAM and its modules said. A prompt that no answer is left for fails, as in
a program that cannot ask. The end of its input is the end of the handle."""

import ctypes
import json
import sys

PROMPT_ECHO_OFF, PROMPT_ECHO_ON, ERROR_MSG, TEXT_INFO = 1, 2, 3, 4
CONV_ERR = 19

libc = ctypes.CDLL(None)
libc.calloc.restype = ctypes.c_void_p
libc.strdup.restype = ctypes.c_void_p
libpam = ctypes.CDLL("libpam.so.0")


class Message(ctypes.Structure):
    _fields_ = [("style", ctypes.c_int), ("text", ctypes.c_char_p)]


class Response(ctypes.Structure):
    _fields_ = [("text", ctypes.c_void_p), ("code", ctypes.c_int)]


CONVERSE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.POINTER(Message)),
                            ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)


class Conversation(ctypes.Structure):
    _fields_ = [("converse", CONVERSE), ("data", ctypes.c_void_p)]


heard, answers = [], []


def converse(n, messages, responses, _data):
    given = libc.calloc(ctypes.c_size_t(n), ctypes.c_size_t(ctypes.sizeof(Response)))
    array = ctypes.cast(given, ctypes.POINTER(Response))
    for i in range(n):
        m = messages[i].contents
        heard.append([m.style, m.text.decode(errors="replace")])
        if m.style in (PROMPT_ECHO_OFF, PROMPT_ECHO_ON):
            if not answers:
                return CONV_ERR
            array[i].text = libc.strdup(answers.pop(0).encode())
    responses[0] = given
    return 0


def main(service, user):
    conversation = Conversation(CONVERSE(converse), None)
    handle = ctypes.c_void_p()
    r = libpam.pam_start(service.encode(), user.encode(), ctypes.byref(conversation),
                         ctypes.byref(handle))
    if r != 0:
        sys.exit(f"pam_start: {r}")
    for line in sys.stdin:
        words = json.loads(line)
        heard.clear()
        answers[:] = words.get("answers", [])
        if words["call"] == "set_item":
            r = libpam.pam_set_item(handle, words["which"], words["value"].encode())
        elif words["call"] == "putenv":
            r = libpam.pam_putenv(handle, words["value"].encode())
        else:
            r = getattr(libpam, "pam_" + words["call"])(handle, words.get("flags", 0))
        print(json.dumps({"result": r, "heard": heard}), flush=True)
    libpam.pam_end(handle, r)


if __name__ == "__main__":
    main(*sys.argv[1:])
