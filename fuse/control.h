/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The control socket of a mount: one JSON object as a line, one as the answer, and the connection
 * ends. Requests are {"request": WORD, ...}; an answer has "ok", and when that is false "error" and
 * perhaps "errno". */

#include "base/report.h"
#include "fuse/registry.h"

#include <poll.h>

struct json_object;

#define SERVE_CONTROL_LINE 16384 /* bytes in a request, its newline included */
#define SERVE_CONTROL_REPLY 65536
#define SERVE_CONTROL_CLIENTS 8 /* at once; more wait in the queue */
#define SERVE_CONTROL_FDS (SERVE_CONTROL_CLIENTS + 1)

/* Answer a request; both objects are the caller's to put. NULL without memory. *fd is a descriptor
 * that came with the request, or -1; it is closed afterwards unless it was taken (TAKE_FD). */
typedef struct json_object *serve_control_fn(struct json_object *request, int *fd, void *arg);

struct serve_control;

/* Listen as NAME.sock in the slot's folder. Only this user and root are answered. */
int serve_control_open(struct serve_control **ret, const struct serve_slot *slot,
                       serve_control_fn *fn, void *arg, struct report *rep);
/* The same on a listening socket that is there already, which it owns from now on. -ENOMEM. */
int serve_control_adopt(struct serve_control **ret, int listener, serve_control_fn *fn, void *arg);
/* NULL is fine. The socket's file is the slot's to remove. */
void serve_control_close(struct serve_control *c);

/* What to poll for: fills SERVE_CONTROL_FDS entries, unused ones with -1. Returns for how many ms
 * at most, -1 for ever: then serve_control_turn() has a client to throw out. */
int serve_control_prepare(struct serve_control *c, struct pollfd fds[SERVE_CONTROL_FDS]);
/* Do what can be done now without waiting. Never blocks, whatever a client does. */
void serve_control_turn(struct serve_control *c, const struct pollfd fds[SERVE_CONTROL_FDS]);

/* {"ok": true} or {"ok": false, "error": text}, to build on. */
struct json_object *serve_control_answer(const char *error);
/* The same with the number of the errno, which becomes the result of serve_control_ask() and so the
 * exit status of whoever asks. */
struct json_object *serve_control_refuse(int err, const char *error);

/* A command's side. Send {"request": word} (or the object more with that added; it is put) and
 * return the answer, the caller's to put. -ECONNREFUSED nobody listens, -ETIMEDOUT, -EPROTO no
 * answer in JSON; -EIO the answer is an error, or the errno that it names; all said. */
int serve_control_ask(struct json_object **ret, const struct serve_found *f, const char *word,
                      struct json_object *more, struct report *rep);
/* The same with a descriptor along, which stays the caller's: for what must not pass through JSON.
 * fd -1: none. */
int serve_control_ask_with(struct json_object **ret, const struct serve_found *f, const char *word,
                           struct json_object *more, int fd, struct report *rep);
