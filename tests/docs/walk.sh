#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# walk.sh BUILD_FOLDER C_COMPILER PAGE: do what a tutorial tells its reader to do, in an empty folder, with this build installed.
#
# In the page, a fenced block whose first line is
#   ```LANGUAGE PATH     becomes the file PATH
#   ```sh                is run, in order; each command must succeed
# Other blocks are only read.
set -euo pipefail

build=$1
page=$(realpath "$3")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/installed" > "$folder/install.log" || { cat "$folder/install.log" && exit 1; }
mkdir "$folder/bin" "$folder/walk"
ln -s "$(command -v "$2")" "$folder/bin/cc"
libraries=$(dirname "$(find "$folder/installed" -name 'libsdlf.*' | head -1)")
export PATH=$folder/bin:$folder/installed/bin:$PATH PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries

cd "$folder/walk"
awk '
    /^```/ && !inside {
        inside = 1
        path = NF > 1 ? $2 : $1 == "```sh" ? "commands.sh" : ""
        next
    }
    /^```$/ { inside = 0; next }
    inside && path != "" { print > path }
' "$page"
[ -s commands.sh ] || { echo "$page has no commands" && exit 1; }
bash -euxo pipefail commands.sh
