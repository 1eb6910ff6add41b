# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Sourced by scripts/demo and tests/run: packages, a temporary folder and user, /dev/fuse, and the
# promise that nothing is left behind.
#
# Everything that runs from here carries HUSHVOL_RUN in its environment, daemons too, and works below
# $run_tmp: that is how it is found at the end, by process id and by path, never by a name alone.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
run_tmp=
run_user=
run_runtime= # the runtime folder of the temporary user, which is no other user's
run_before=
fuse_mode=
mtab_made=
child=

say() { printf '%s\n' "$@"; }
die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}
is_root() { [ "$(id -u)" -eq 0 ]; }

# Install what the lists name and what is not there yet; say what to do where that is not allowed.
install_packages() {
    local package missing=() as=()

    command -v dpkg-query >/dev/null || {
        say "Not a Debian system: the packages in ${*##*/} are taken to be there."
        return 0
    }
    while read -r package; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            missing+=("$package")
    done < <(cat "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! is_root; then
        sudo -n true 2>/dev/null ||
            die "missing packages; as root: apt-get install ${missing[*]}"
        as=(sudo -n)
    fi
    say "Installing: ${missing[*]}"
    "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
        install "${missing[@]}" >/dev/null
}

# A temporary folder that the temporary user can enter, and the end of it all, whatever the end is.
run_begin() {
    run_tmp=$(mktemp -d "/tmp/hushvol-$1.XXXXXX")
    run_tmp=$(cd "$run_tmp" && pwd -P)
    chmod 755 "$run_tmp"
    export HUSHVOL_RUN="$run_tmp" TMPDIR="$run_tmp"
    trap 'run_end $?' EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    run_before=$(present)
    if is_root && [ -c /dev/fuse ]; then
        fuse_mode=$(stat -c %a /dev/fuse)
        chmod 666 /dev/fuse
    fi
    if is_root && [ ! -e /etc/mtab ]; then
        # A bare container may lack it, and then fusermount3 can not unmount.
        ln -s ../proc/self/mounts /etc/mtab
        mtab_made=1
    fi
    if is_root; then
        run_user=hushvol-$1-$$
        useradd --system --user-group --no-create-home --home-dir "$run_tmp/home" \
            --shell /bin/sh "$run_user" 2>/dev/null || die "no temporary user could be made"
        install -d -m 700 -o "$run_user" -g "$run_user" "$run_tmp/home"
        run_runtime=/tmp/hushvol-$(id -u "$run_user")
    fi
}

# Run a command so that a signal to this script ends it at once.
attended() {
    "$@" &
    child=$!
    local status=0
    wait "$child" || status=$?
    child=
    return "$status"
}

# Process ids, ours excepted, that this run started.
run_processes() {
    local environ pid
    for environ in /proc/[0-9]*/environ; do
        pid=${environ#/proc/}
        pid=${pid%/environ}
        tr '\0' '\n' <"$environ" 2>/dev/null | grep -qxF "HUSHVOL_RUN=$run_tmp" && echo "$pid"
    done 2>/dev/null
    return 0
}

run_mounts() {
    awk -v at="$run_tmp/" -v own="${run_runtime:-/none}/" \
        'index($5, at) == 1 || index($5, own) == 1 {print $5}' /proc/self/mountinfo | tac
}

run_loops() {
    local f
    for f in /sys/block/loop*/loop/backing_file; do
        [ -e "$f" ] && grep -q "^$run_tmp/" "$f" 2>/dev/null && echo "/dev/$(basename "${f%/loop/*}")"
    done
    return 0
}

# Take away by force what an orderly end would have taken away.
sweep() {
    local pid point device end=$((SECONDS + 10))

    for pid in $(run_processes); do kill -TERM "$pid" 2>/dev/null || true; done
    while [ $SECONDS -le $end ] && [ -n "$(run_processes)" ]; do sleep 0.1; done
    for point in $(run_mounts); do
        point=$(printf '%b' "$point")
        if is_root; then umount -l "$point" || true; else fusermount3 -uz "$point" || true; fi
    done
    for device in $(run_loops); do losetup -d "$device" || true; done
    for pid in $(run_processes); do kill -KILL "$pid" 2>/dev/null || true; done
}

# One line for each thing that must not be there afterwards unless it was there before. Volumes are
# looked for in $run_tmp and in the runtime folders that these tests may use, so that those of others
# on the machine do not count.
present() {
    local uid where
    uid=$(id -u)
    where=" ($run_tmp|${run_runtime:-$run_tmp}|/run/user/$uid/hushvol|/tmp/hushvol-$uid)/"
    ! is_root || where="$where| /run/hushvol/"
    {
        awk '{print "mount " $5}' /proc/self/mountinfo
        for f in /sys/block/loop*/loop/backing_file; do
            [ ! -e "$f" ] || sed 's/^/loop-device-on /' "$f" 2>/dev/null
        done
    } | grep -E "$where"
    for pid in $(run_processes); do echo "process $pid $(cat "/proc/$pid/comm" 2>/dev/null)"; done |
        grep -E ' (hushvol|mount.hushvol|fuse2fs)$'
    sed -n 's/^\(hushvol-[a-z]*-[0-9]*\):.*/user \1/p' /etc/passwd | grep -vxF "user $run_user"
    return 0
}

# What is there now and was not before; waits a little for what is just ending.
leftovers() {
    local now end=$((SECONDS + 5))
    while [ $SECONDS -le $end ]; do
        now=$(comm -13 <(sort -u <<<"$run_before") <(present | sort -u))
        [ -n "$now" ] || return 0
        sleep 0.1
    done
    say "$now"
}

# Fails when more is left than what run_end takes away: the temporary folder and user.
run_check() {
    local left
    left=$(leftovers)
    [ -z "$left" ] || {
        say "Left behind:" "$left"
        return 1
    }
}

run_end() {
    local status=$1
    trap '' HUP INT TERM
    trap - EXIT
    set +e
    [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
    sweep
    if [ -n "$run_user" ]; then
        rm -rf --one-file-system "$run_runtime"
        userdel "$run_user" || status=1
    fi
    [ -z "$fuse_mode" ] || chmod "$fuse_mode" /dev/fuse
    [ -z "$mtab_made" ] || rm -f /etc/mtab
    rm -rf --one-file-system "$run_tmp"
    exit "$status"
}

# Configure and build; quiet unless it fails.  [target=NAME] build_in FOLDER CMAKE-OPTION...
build_in() {
    local folder=$1 log
    shift
    log=$(mktemp "${TMPDIR:-/tmp}/build.XXXXXX")
    if ! { cmake -S "$top" -B "$folder" "$@" &&
        cmake --build "$folder" --parallel "$(nproc)" --target "${target:-all}"; } >"$log" 2>&1; then
        cat "$log"
        return 1
    fi
    rm -f "$log"
}
