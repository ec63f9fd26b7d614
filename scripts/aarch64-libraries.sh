#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fetch the libraries that SDLF is linked with for 64-bit ARM, as Debian packages, and unpack them in build/aarch64-root, for the preset
# aarch64. The system itself is not changed: lists and packages are kept in that folder too.
#
#   scripts/aarch64-libraries.sh
. "$(dirname "$0")/common.sh"

packages=(zlib1g zlib1g-dev libjansson4 libjansson-dev libpng16-16 libpng-dev libturbojpeg0 libturbojpeg0-dev libprotobuf-c1 libprotobuf-c-dev)
root=$PWD/build/aarch64-root
mkdir -p "$root"/apt/{lists,archives}/partial "$root/usr/lib"
[ -e "$root/lib" ] || ln -s usr/lib "$root/lib"
: > "$root/apt/status"
options=(-q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Acquire::Retries=2
    -o Dir::State::lists="$root/apt/lists" -o Dir::State::status="$root/apt/status" -o Dir::Cache::archives="$root/apt/archives")
apt-get "${options[@]}" update
(cd "$root/apt/archives" && apt-get "${options[@]}" download "${packages[@]}")
for package in "$root"/apt/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"
done
# links that name a path from the root of the system
find "$root/usr" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
    ln -sfr "$root$target" "$link"
done
