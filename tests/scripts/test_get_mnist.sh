#!/bin/sh
# SPDX-License-Identifier: MIT
# Does scripts/get-mnist.sh get files, check them, and leave nothing half done? Mirrors are folders and file:// URLs of
# small made-up files; where SDLF_DATA has the real ones, their checksums are tested too.
#
#   test_get_mnist.sh SCRIPT
set -eu
script=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0

check() { # check WHAT COMMAND...
    what=$1
    shift
    if "$@"; then
        printf 'ok       %s\n' "$what"
    else
        printf 'FAILED   %s: %s\n' "$what" "$*"
        failures=$((failures + 1))
    fi
}

# get STATUS ARGUMENTS...: run the script on the made-up checksums; its output is in the file `said`.
get() {
    expected=$1
    shift
    status=0
    sh "$script" --checksums sums "$@" > said 2>&1 || status=$?
    [ "$status" = "$expected" ] || {
        printf 'exit status %s, expected %s:\n' "$status" "$expected"
        cat said
        return 1
    }
}

says() { grep -qF -- "$1" said; }
same() { cmp -s "good/one.gz" "$1/one.gz" && cmp -s "good/two.gz" "$1/two.gz"; }
is_empty() { [ -z "$(ls -A "$1")" ]; }
lacks_parts() { [ -z "$(find "$1" -name '*.part')" ]; }

mkdir good bad half
printf 'the first file, with a few more words in it' > good/one.gz
printf 'the second' > good/two.gz
printf 'something else' > bad/one.gz
cp good/one.gz half/one.gz
if command -v sha256sum > /dev/null; then (cd good && sha256sum one.gz two.gz) > sums
else (cd good && shasum -a 256 one.gz two.gz) > sums; fi
unset SDLF_MNIST_MIRROR

check 'gets files from a folder' get 0 --mirror good 'a folder'
check 'they are the right ones' same 'a folder'
check 'no partial files are left' lacks_parts 'a folder'
check 'keeps what is there' get 0 --mirror nowhere 'a folder'
check 'and says so' says 'a folder/one.gz: already there'

SDLF_MNIST_MIRROR=good
export SDLF_MNIST_MIRROR
check 'the environment names a mirror' get 0 by_environment
check 'whose files are the right ones' same by_environment
unset SDLF_MNIST_MIRROR

check 'goes on to another mirror' get 0 --mirror nowhere --mirror bad --mirror half --mirror good patient
check 'and gets the right files' same patient
check 'says whose checksum was wrong' says 'one.gz from bad: SHA-256 is '

check 'fails where no mirror is right' get 1 --mirror bad --mirror nowhere refused
check 'leaves nothing behind' is_empty refused
check 'says what to do instead' says '--data digits'
check 'keeps one file where only one can be had' get 1 --mirror half partly
check 'which is whole' cmp -s good/one.gz partly/one.gz
check 'without a part of the other' lacks_parts partly
check 'and gets the rest another time' get 0 --mirror good partly

mkdir mine
echo mine > mine/two.gz
check 'does not touch other files' get 1 --mirror good mine
check 'names them' says 'mine/two.gz is there, but is another file'
check 'leaves them' [ "$(cat mine/two.gz)" = mine ]

if command -v curl > /dev/null; then
    mkdir killed
    head -c 20 good/one.gz > killed/one.gz.part
    cp good/two.gz killed/two.gz.part
    check 'goes on after being killed' get 0 --mirror "file://$work/good/" killed
    check 'with the right files' same killed
    mkdir muddled
    printf 'other bytes' > muddled/one.gz.part
    check 'begins anew where a part is wrong' get 0 --mirror "file://$work/good" muddled
    check 'with right files' same muddled
    check 'no parts' lacks_parts muddled
fi

check 'refuses unknown options' get 2 --fast
check 'refuses two folders' get 2 one two
check 'refuses an option without its value' get 2 --mirror
printf 'abc ../../evil\n' > evil
check 'refuses names that leave the folder' get 1 --checksums evil --mirror good safe
check 'has help' get 0 --help

if [ -n "${SDLF_DATA:-}" ] && [ -d "$SDLF_DATA/mnist" ]; then
    check 'knows the real files' sh "$script" --mirror "$SDLF_DATA/mnist" real
else
    echo 'skipped  knows the real files: SDLF_DATA names no folder with mnist/ in it'
fi
[ "$failures" = 0 ]
