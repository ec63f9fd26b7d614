#!/bin/sh
# SPDX-License-Identifier: MIT
# Download MNIST's four files into a folder, and check them.
#
#   scripts/get-mnist.sh [options] [FOLDER]      FOLDER is data/mnist if none is named
#   sdlf-get-mnist [options] [FOLDER]            the same, where SDLF is installed
#
#   --mirror PLACE      fetch the files from here instead: a URL, or a local folder; may be repeated
#                       (SDLF_MNIST_MIRROR, if set, names another)
#   --checksums FILE    the files to fetch and their SHA-256, as sha256sum prints them: for another set of the same format
#   --help              this text
#
# Existing files are checked and kept. A file gets its name only when it is complete and its checksum is right; until then it is FILE.part, which
# the next run resumes if this one is killed. Needs curl or wget; exit status 0 if all files are there, 1 if not, 2 if the command line is wrong.
set -eu

mirrors='https://ossci-datasets.s3.amazonaws.com/mnist
https://storage.googleapis.com/cvdf-datasets/mnist
https://raw.githubusercontent.com/fgnt/mnist/master'
checksums='440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609  train-images-idx3-ubyte.gz
3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c  train-labels-idx1-ubyte.gz
8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6  t10k-images-idx3-ubyte.gz
f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6  t10k-labels-idx1-ubyte.gz'

newline='
'
folder=
chosen=${SDLF_MNIST_MIRROR:-}

fail() {
    printf 'get-mnist: %s\n' "$*" >&2
    exit 1
}

usage() {
    printf 'get-mnist: %s; see --help\n' "$*" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --mirror)
        [ -n "${2:-}" ] || usage "--mirror needs a URL or a folder"
        chosen=$chosen${chosen:+$newline}$2
        shift
        ;;
    --checksums)
        [ -r "${2:-}" ] || usage "--checksums needs a file that can be read"
        checksums=$(cat -- "$2")
        shift
        ;;
    --help | -h)
        sed -n '3,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*) usage "unknown option '$1'" ;;
    *)
        [ -z "$folder" ] || usage "one folder, not two: '$folder', '$1'"
        folder=$1
        ;;
    esac
    shift
done
folder=${folder:-data/mnist}
[ -z "$chosen" ] || mirrors=$chosen

# sha256 FILE
if command -v sha256sum > /dev/null; then
    sha256() { sha256sum < "$1" | cut -d ' ' -f 1; }
elif command -v shasum > /dev/null; then
    sha256() { shasum -a 256 < "$1" | cut -d ' ' -f 1; }
elif command -v openssl > /dev/null; then
    sha256() { openssl dgst -sha256 -r < "$1" | cut -d ' ' -f 1; }
else
    fail "none of sha256sum, shasum and openssl is installed, so nothing could be checked"
fi

# fetch PLACE NAME FILE: download FILE or resume its download. A mirror's answer is trusted only after the checksum.
fetch() {
    case $1 in
    *://*)
        if command -v curl > /dev/null; then
            curl --fail --silent --show-error --location --connect-timeout 15 --speed-time 30 --speed-limit 1000 \
                --continue-at - --output "$3" "$1/$2"
        elif command -v wget > /dev/null; then
            wget --quiet --timeout=30 --tries=1 --continue --output-document="$3" "$1/$2"
        else
            fail "neither curl nor wget is installed: apt-get install curl"
        fi
        ;;
    *) cat -- "$1/$2" > "$3" ;;
    esac
}

# The file being downloaded; it is removed however this script ends.
part=
trap '[ -z "$part" ] || rm -f -- "$part"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# accept SUM NAME PLACE: rename the downloaded file if its checksum is right; delete it if not.
accept() {
    found=$(sha256 "$part")
    if [ "$found" != "$1" ]; then
        rm -f -- "$part"
        printf 'get-mnist: %s from %s: SHA-256 is %s, expected %s\n' "$2" "$3" "$found" "$1" >&2
        return 1
    fi
    mv -- "$part" "$folder/$2" || fail "cannot write $folder/$2"
    part=
    printf '%s: from %s\n' "$folder/$2" "$3"
}

# get SUM NAME: from the first mirror that has it. An interrupted transfer is resumed at the next mirror. A mirror that
# cannot resume, or gives a wrong checksum (the resumed part may be wrong), is asked once more for the whole file.
get() {
    sum=$1 name=$2
    part=$folder/$name.part
    if [ -e "$part" ] && [ "$(sha256 "$part")" = "$sum" ]; then # complete, but an earlier run was killed before this step
        accept "$sum" "$name" "an earlier run"
        return 0
    fi
    IFS=$newline
    set -f
    # shellcheck disable=SC2086 # one mirror a line
    set -- $mirrors
    set +f
    unset IFS
    for mirror in "$@"; do
        for _ in once again; do
            began=no
            [ -s "$part" ] || began=yes
            if fetch "${mirror%/}" "$name" "$part"; then
                if accept "$sum" "$name" "$mirror"; then return 0; fi
            else
                [ "$began" = no ] || break
                rm -f -- "$part"
            fi
        done
    done
    rm -f -- "$part"
    part=
    return 1
}

mkdir -p -- "$folder" || fail "cannot make the folder '$folder'"
while read -r sum name; do
    [ -n "$sum" ] || continue
    case $name in
    "" | *[!A-Za-z0-9._-]* | .*) fail "'$sum  $name' is no line of a checksum file" ;;
    esac
    if [ -e "$folder/$name" ]; then
        found=$(sha256 "$folder/$name")
        [ "$found" = "$sum" ] || fail "$folder/$name is there, but is another file: its SHA-256 is $found, expected $sum.
Move it away, or name another folder; nothing was changed."
        printf '%s: already there\n' "$folder/$name"
    elif ! get "$sum" "$name"; then
        printf 'get-mnist: %s could not be had from any of\n%s\n' "$name" "$mirrors" >&2
        printf '%s\n' "If this machine has no network: download the files from one of these places on another machine," \
            "copy them into '$folder', and run this again to check them. Or train without any download: --data digits" >&2
        exit 1
    fi
done << END
$checksums
END
printf 'MNIST is in %s; use it with --data mnist:%s\n' "$folder" "$folder"
