#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Does the comment at the top of every public header say what holds of threads, ownership and errors? And has every
# struct that must be able to grow (options, class tables, and what functions fill for their callers) reserved members?
# The options of operations have room in the union that holds them.
#
#   headers.sh FOLDER      the project's folder
set -euo pipefail
cd "$1"
failed=0
headers=(framework/include/sdlf/*.h framework/include/sdlf/*/*.h)
for header in "${headers[@]}"; do
    top=$(sed '1d; /\*\//q' "$header")
    for word in Threads Ownership Errors; do
        grep -q "^ \* $word: ." <<< "$top" || { echo "$header: its first comment says nothing of '$word:'" && failed=1; }
    done
done

filled='sdlf_(batch|c_exported|dataset|evaluation|graph|machine|metrics|onnx_exported|progress|quantized)'
growing=0
while read -r header name reserved; do
    growing=$((growing + 1))
    [ "$reserved" = 1 ] || { echo "$header: $name has no reserved members" && failed=1; }
done < <(awk -v names="^(sdlf_.*_(options|info|class)|$filled)\$" '
    FNR == 1 { name = "" }
    match($0, /^(typedef )?struct sdlf_[a-z0-9_]+ \{$/) { name = $(NF - 1); reserved = 0 }
    /^    (void \*|unsigned char )reserved\[/ { reserved = 1 }
    /^}/ && name != "" { if (name ~ names) print FILENAME, name, reserved; name = "" }
' framework/include/sdlf/*.h framework/include/sdlf/layers/*.h)
if [ "$growing" -lt 75 ]; then
    echo "only $growing structs that can grow were found in the public headers: this script reads them wrongly"
    exit 1
fi
grep -q '^        unsigned char reserved\[' framework/include/sdlf/operation.h ||
    { echo "framework/include/sdlf/operation.h: the union of options has no room to grow" && failed=1; }
[ "$failed" -eq 0 ] || exit 1
echo "${#headers[@]} headers say what holds of threads, ownership and errors; $growing structs have reserved members."
