#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Packages of a finished build: the same bytes twice, installed, used, and removed without a trace.
#
#   packages.sh BUILD_FOLDER
set -euo pipefail
build=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command -v dpkg-deb > /dev/null && command -v dpkg > /dev/null || { echo "skipped: there is no dpkg" && exit 77; }
export SOURCE_DATE_EPOCH=1700000000

pack() { # pack NAME
    mkdir "$folder/$1"
    (cd "$folder/$1" && cpack --config "$build/CPackConfig.cmake" -G "DEB;TGZ" -B "$folder/$1" > "$folder/log" 2>&1) || { cat "$folder/log" && exit 1; }
    rm -rf "$folder/$1/_CPack_Packages"
    (cd "$folder/$1" && sha256sum -- *.deb *.tar.gz)
}

first=$(pack a)
sleep 1.1 # another second
second=$(pack b)
[ "$first" = "$second" ] || { printf 'two packings differ:\n%s\n%s\n' "$first" "$second" && exit 1; }
printf '%s\n' "$first"

# A root of its own: what dpkg puts there, and takes away. A user that is not root, and no fakeroot: only unpacked.
root=$folder/root
mkdir -p "$root/var/lib/dpkg/"{info,updates,triggers}
touch "$root/var/lib/dpkg/"{status,available}
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if command -v fakeroot > /dev/null; then as_root=(fakeroot); else echo "skipped: neither root nor fakeroot" && exit 77; fi
fi
mapfile -t names < <(for deb in "$folder"/a/*.deb; do dpkg-deb -f "$deb" Package; done)
"${as_root[@]}" dpkg --root="$root" --force-depends --force-not-root --log=/dev/null -i "$folder"/a/*.deb > "$folder/log" 2>&1 || { cat "$folder/log" && exit 1; }
library=$(find "$root/usr" -name 'libsdlf.so*' -exec dirname {} \; | head -1)
said=$(LD_LIBRARY_PATH=$library "$root/usr/bin/sdlf" --version)
[[ $said == "sdlf "* ]] || { echo "the installed program says '$said'" && exit 1; }
for file in usr/include/sdlf/sdlf.h usr/share/doc/sdlf/copyright usr/share/bash-completion/completions/sdlf; do
    [ -f "$root/$file" ] || { echo "there is no /$file" && exit 1; }
done
[ -n "$(find "$root/usr" -name 'sdlf-train.1*')" ] || { echo "there is no sdlf-train(1)" && exit 1; }
installed=$(find "$root/usr" -type f | wc -l)

# There with nothing else of this machine than the libraries that it is linked with: it trains, and tells how well.
if [ "$(id -u)" -eq 0 ]; then
    mapfile -t needed < <(LD_LIBRARY_PATH=$library ldd "$root/usr/bin/sdlf" | grep -o '/[^ ]*' | grep -v "^$root/" | sort -u)
    (cd / && tar -chf - "${needed[@]/#/.}") | tar -xf - -C "$root" --keep-directory-symlink
    mkdir "$root/tmp"
    folders=${library#"$root"}:$(printf '%s\n' "${needed[@]%/*}" | sort -u | paste -s -d :)
    LD_LIBRARY_PATH=$folders chroot "$root" /usr/bin/sdlf train --net lenet5 --data digits:600 --epochs 1 --quiet --out /tmp/lenet5.safetensors
    said=$(LD_LIBRARY_PATH=$folders chroot "$root" /usr/bin/sdlf eval --weights /tmp/lenet5.safetensors --data digits:600)
    grep " right " <<< "$said"
    rm -rf "$root/tmp" "${needed[@]/#/$root}"
fi
"${as_root[@]}" dpkg --root="$root" --force-depends --force-not-root --log=/dev/null -P "${names[@]}" > "$folder/log" 2>&1 || { cat "$folder/log" && exit 1; }
left=$(find "$root" -type f -not -path "$root/var/lib/dpkg/*")
[ -z "$left" ] || { printf 'left behind:\n%s\n' "$left" && exit 1; }

mkdir "$folder/archive"
tar -xzf "$folder"/a/*.tar.gz -C "$folder/archive" --strip-components=1
LD_LIBRARY_PATH=$folder/archive/lib "$folder/archive/bin/sdlf" --version

# with kernels, the static library wants the CUDA Toolkit, wherever that is
tags=()
if grep -q -e -lcudart "$build/sdlf.pc"; then tags=(--suppress-tags pkg-config-bad-directive); fi
if command -v lintian > /dev/null; then lintian --fail-on error "${tags[@]}" --allow-root "$folder"/a/*.deb; else echo "There is no lintian: the packages were not checked."; fi
echo "${names[*]}: $installed files installed, used, and removed; two packings are the same bytes."
