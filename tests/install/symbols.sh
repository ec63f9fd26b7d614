#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Does an installed library, static or shared, have the names that its headers declare, and no others that a program could run into?
#
#   symbols.sh INCLUDE_FOLDER LIBRARY COMPILER
set -euo pipefail
headers=$1
library=$2
compiler=$3
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

# What is left of the headers without comments, macros and bodies: functions, and what is extern.
(cd "$headers" && find sdlf -name '*.h' | sort | sed 's/.*/#include <&>/') > "$temporary/all.c"
"$compiler" -std=c11 -E -I "$headers" "$temporary/all.c" > "$temporary/all.i"
awk -v headers="$headers/" '/^# / { ours = index($3, headers) > 0; next } ours' "$temporary/all.i" | sed 's/[{};]/\n&\n/g' | awk '
    $0 == "{" { depth++; text = ""; next }
    $0 == "}" { depth--; next }
    $0 != ";" { text = text " " $0; next }
    depth == 0 && text !~ /typedef/ && match(text, /sdlf_[a-z0-9_]+[([]/) { print substr(text, RSTART, RLENGTH - 1) }
    { text = "" }
' | sort -u > "$temporary/declared"

case $library in
*.a) nm -g --defined-only "$library" ;;
*) nm -D --defined-only "$library" ;;
esac | awk 'NF == 3 { print $3 }' | sort -u > "$temporary/defined"

[ "$(wc -l < "$temporary/declared")" -ge 200 ] || { echo "the headers are read wrongly" && exit 1; }
comm -23 "$temporary/defined" "$temporary/declared" | sed 's/$/: in the library, and in no header/' > "$temporary/wrong"
comm -13 "$temporary/defined" "$temporary/declared" | sed 's/$/: in a header, and not in the library/' >> "$temporary/wrong"
if [ -s "$temporary/wrong" ]; then
    cat "$temporary/wrong"
    exit 1
fi
echo "$(wc -l < "$temporary/defined") names, those that the headers declare."
