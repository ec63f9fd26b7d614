#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Build the libraries that SDLF needs with musl, from the sources of Debian's packages, in build/musl-root, for the preset musl. The system
# itself is not changed: lists and sources are kept in that folder too.
#
#   scripts/musl-libraries.sh      needs Debian's packages musl-tools and dpkg-dev
. "$(dirname "$0")/common.sh"

root=$PWD/build/musl-root
mkdir -p "$root"/{sources.d,lists/partial,lib,include}
: > "$root/sources.list"
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do # the same hosts, asked for sources
    [ ! -e "$list" ] || sed -E 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$list" > "$root/sources.d/${list##*/}"
done
options=(-q -o Dir::Etc::sourcelist="$root/sources.list" -o Dir::Etc::sourceparts="$root/sources.d" -o Dir::State::lists="$root/lists"
    -o APT::Sandbox::User=root -o Acquire::Retries=2)
apt-get "${options[@]}" update
cd "$root"
rm -rf zlib-*/ jansson-*/
apt-get "${options[@]}" source zlib jansson
(cd zlib-*/ && CC=musl-gcc CFLAGS="-O2 -fPIC" ./configure --static --prefix="$root" && make libz.a && cp libz.a "$root/lib" && cp zlib.h zconf.h "$root/include")
cmake -S jansson-*/ -B jansson -DCMAKE_C_COMPILER=musl-gcc -DCMAKE_C_FLAGS="-O2 -fPIC" -DCMAKE_INSTALL_PREFIX="$root" -DCMAKE_INSTALL_LIBDIR=lib \
    -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
cmake --build jansson --target install
