#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Debian packages in a clean installation of this distribution: installed with what they depend on, used, and removed without a trace.
#
#   clean_root.sh FOLDER      the folder of the .deb files
#
# As root, with debootstrap and the distribution's archive; SDLF_CLEAN_ROOT names a folder with a minimal installation to copy instead.
# Where that cannot be had it is skipped (77).
set -euo pipefail
packages=$(realpath "$1")
[ "$(id -u)" -eq 0 ] || { echo "skipped: not root" && exit 77; }
folder=$(mktemp -d)
root=$folder/root
mounted=()
end() {
    for place in "${mounted[@]}"; do umount "$place" || exit 1; done # nothing below is removed while it is mounted
    rm -rf --one-file-system "$folder"
}
trap end EXIT
. /etc/os-release
if [ -n "${SDLF_CLEAN_ROOT:-}" ]; then
    cp -a "$SDLF_CLEAN_ROOT" "$root"
else
    command -v debootstrap > /dev/null || { echo "skipped: there is no debootstrap" && exit 77; }
    components=main
    [ "$ID" != ubuntu ] || components=main,universe
    if ! debootstrap --variant=minbase "--components=$components" "$VERSION_CODENAME" "$root" > "$folder/log" 2>&1; then
        tail -n 3 "$folder/log"
        echo "skipped: debootstrap has made no installation of $VERSION_CODENAME"
        exit 77
    fi
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/packages"
mount -t proc proc "$root/proc" && mounted+=("$root/proc")
inside() { DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$root" "$@"; }
quietly() { "$@" > "$folder/log" 2>&1 < /dev/null || { tail -n 20 "$folder/log" && exit 1; }; }
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./packages -o -path ./var/cache -o -path ./var/log -o -path ./tmp \) -prune -o -print | sort); }

# What they depend on comes first, so that what is left then is theirs alone.
names=()
depends=()
for deb in "$packages"/*.deb; do
    names+=("$(dpkg-deb -f "$deb" Package)")
    cp "$deb" "$root/packages"
    while read -r name; do depends+=("$name"); done < <(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/ *(.*//; s/|.*//; s/ //g' | grep -v sdlf)
done
quietly inside apt-get update
quietly inside apt-get install -y --no-install-recommends "${depends[@]}"
files > "$folder/before"
quietly inside sh -c 'apt-get install -y --no-install-recommends /packages/*.deb'
echo "installed: ${names[*]}"

inside sdlf --version
inside sh -ec 'cd /tmp; sdlf train --net lenet5 --data digits:600 --epochs 1 --quiet; sdlf eval --weights lenet5.safetensors --data digits:600 > said; tail -n 1 said; rm said lenet5.safetensors'
inside sh -c 'test -s /usr/share/man/man1/sdlf-train.1.gz && test -s /usr/share/bash-completion/completions/sdlf'
if [[ " ${names[*]} " == *" python3-sdlf "* ]]; then
    inside python3 - << 'END'
import numpy as np
import sdlf

model = sdlf.Model.builtin("lenet5", (1, 28, 28))
history = sdlf.Trainer(model, sdlf.Dataset.open("digits:600"), epochs=1, progress=False).run()
scores = model(np.zeros((2, 1, 28, 28), np.float32))
print(f"Python: sdlf {sdlf.__version__}, loss {history['loss'][0]:.3f}, scores {scores.shape}, from {sdlf.__file__}")
END
    [ -s "$root/usr/share/doc/python3-sdlf/examples/see.py" ] || { echo "the examples are missing" && exit 1; }
    [ -n "$(find "$root/usr/lib/python3/dist-packages/sdlf" -name '*.pyc')" ] || { echo "postinst has compiled nothing" && exit 1; }
fi

quietly inside apt-get purge -y "${names[@]}"
files > "$folder/after"
if ! diff "$folder/before" "$folder/after" > "$folder/difference"; then
    cat "$folder/difference"
    echo "${names[*]}: this differs from before they were installed"
    exit 1
fi
echo "${names[*]}: installed, used, and removed without a trace on $(. "$root/etc/os-release" && echo "$PRETTY_NAME")."
