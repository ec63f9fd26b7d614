#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Install the missing packages for building SDLF, on Debian and Ubuntu, as root or with sudo.
#
#   scripts/setup.sh           what building, testing and running need
#   scripts/setup.sh --dev     also what .ci/run needs: ccache, Clang, its sanitizers and fuzzer, clang-format, Doxygen, Python environments,
#                              debootstrap, lintian, fish, zsh, Chromium, a compiler for 64-bit ARM and an emulator, musl
#   scripts/setup.sh --check   install nothing; say what is missing; fail if SDLF cannot be built
#
# The CUDA toolkit is never installed.
. "$(dirname "$0")/common.sh"

# In "a|b" the first name that the distribution has is used.
required=(build-essential cmake ninja-build pkg-config zlib1g-dev libjansson-dev)
# Each enables a feature: fast matrix products, PNG images, JPEG images, ONNX models (two packages), a page to draw on, training in several
# processes (two packages).
optional=(libdnnl-dev libpng-dev libturbojpeg0-dev protobuf-c-compiler libprotobuf-c-dev libmicrohttpd-dev libopenmpi-dev openmpi-bin)
developer=(git ccache clang "libclang-rt-dev|libclang-rt-14-dev" "clang-format-14|clang-format" doxygen python3-venv python3-dev debootstrap lintian fish zsh chromium
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user musl-tools dpkg-dev)

install=yes
for argument in "$@"; do
    case $argument in
    --dev) optional+=("${developer[@]}") ;;
    --check) install=no ;;
    -h | --help) sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0" && exit 0 ;;
    *) echo "$0: unknown option '$argument'; see --help" >&2 && exit 2 ;;
    esac
done

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null)" = installed ]; }
is_known() { [ -n "$(apt-cache policy "$1" 2> /dev/null | sed -n 's/^ *Candidate: *\([^(].*\)/\1/p')" ]; }

# The members of the given list of which no alternative is installed.
missing() {
    local names name
    for names in "$@"; do
        for name in ${names//|/ }; do
            is_installed "$name" && continue 2
        done
        printf '%s\n' "$names"
    done
}

# For each member its first alternative that apt knows; the first, if it knows none.
choose() {
    local names name
    for names in "$@"; do
        for name in ${names//|/ }; do
            is_known "$name" && printf '%s\n' "$name" && continue 2
        done
        printf '%s\n' "${names%%|*}"
    done
}

if ! command -v apt-get > /dev/null || ! command -v dpkg-query > /dev/null; then
    echo "This is no Debian or Ubuntu: nothing is installed. SDLF needs a C11 compiler, CMake 3.22, Ninja, pkg-config,"
    echo "zlib and jansson; it makes use of oneDNN, libpng, libturbojpeg, protobuf-c and libmicrohttpd where they are found."
    exit 0
fi

mapfile -t missing_required < <(missing "${required[@]}")
mapfile -t missing_optional < <(missing "${optional[@]}")
if [ ${#missing_required[@]} -eq 0 ] && [ ${#missing_optional[@]} -eq 0 ]; then
    echo "All packages are there."
    exit 0
fi
[ ${#missing_required[@]} -eq 0 ] || echo "Missing, needed:   ${missing_required[*]}"
[ ${#missing_optional[@]} -eq 0 ] || echo "Missing, optional: ${missing_optional[*]}"
if [ "$install" = no ]; then
    [ ${#missing_required[@]} -eq 0 ]
    exit
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo > /dev/null; then
        as_root=(sudo)
    elif [ ${#missing_required[@]} -eq 0 ]; then
        echo "Not root, and no sudo: going on without the optional packages."
        exit 0
    else
        echo "Not root, and no sudo: as root, run: apt-get install ${missing_required[*]}" >&2
        exit 1
    fi
fi

apt() {
    run "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 \
        -o DPkg::Lock::Timeout=300 "$@"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() { "$@" < /dev/null > "$log" 2>&1 || { tail -n 12 "$log"; return 1; }; }

echo "Fetching the package lists ..."
quietly apt update || echo "(that failed; trying with the lists that are there)"
if [ ${#missing_required[@]} -gt 0 ]; then
    mapfile -t names < <(choose "${missing_required[@]}")
    echo "Installing ${names[*]} ..."
    quietly apt install --no-install-recommends "${names[@]}"
fi
if [ ${#missing_optional[@]} -gt 0 ]; then
    mapfile -t names < <(choose "${missing_optional[@]}")
    echo "Installing ${names[*]} ..."
    if ! quietly apt install --no-install-recommends "${names[@]}" > /dev/null; then
        for name in "${names[@]}"; do # one unavailable package must not block the others
            quietly apt install --no-install-recommends "$name" > /dev/null || echo "No $name: going on without it."
        done
    fi
fi
