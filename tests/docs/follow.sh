#!/usr/bin/env bash
# follow.sh PAGE C_COMPILER: do what a page of docs/ tells its reader to do, in a copy of the project.
#
# In the page, a fenced block whose first line is
#   ```LANGUAGE PATH     becomes the file PATH
#   ```diff              is applied to the tree, where it must fit
#   ```sh                is run, from the project's folder, after all of those; each must succeed
# Other blocks are only read.
#
# The copy is compiled with few optimisations, and by ccache where that is found: most of it has been compiled before.
set -euo pipefail

page=$(realpath "$1")
compiler=$2
source=$(cd "$(dirname "$0")/../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

cd "$source"
cp -a --parents CMakeLists.txt CMakePresets.json LICENSE cmake framework layers calculators datasets graphs apps tests "$copy"
cd "$copy"

awk '
    /^```/ && !inside {
        inside = 1
        language = substr($1, 4)
        path = NF > 1 ? $2 : language == "diff" ? "changes.patch" : language == "sh" ? "commands.sh" : ""
        if (NF > 1 && system("mkdir -p \"$(dirname \"" path "\")\"") != 0) exit 1
        next
    }
    /^```$/ { inside = 0; next }
    inside && path != "" { print > path }
' "$page"

if [ -f changes.patch ]; then
    patch --strip 1 --fuzz 2 --no-backup-if-mismatch < changes.patch
fi
sed -i 's/"SDLF_CUDA": "OFF"/"SDLF_CUDA": "OFF", "CMAKE_C_FLAGS_RELEASE": "-O1 -DNDEBUG"/' CMakePresets.json
grep -q -- '-O1 -DNDEBUG' CMakePresets.json
if command -v ccache > /dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1
fi
sed 's/^/$ /' commands.sh
CC=$compiler CFLAGS=-Werror bash -euo pipefail commands.sh
