#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every tracked source file has a licence line, before anything but a #! line.
#
#   scripts/spdx.sh            add the line if it is missing
#   scripts/spdx.sh --check    change nothing; fail, naming the files, if it is missing
. "$(dirname "$0")/common.sh"

says='SPDX-License-Identifier: MIT'
mapfile -d '' files < <(git ls-files -z -- '*.c' '*.cpp' '*.h' '*.cu' '*.cuh' '*.js' '*.py' '*.pyi' '*.sh' '*.cmake' '*CMakeLists.txt' .ci/run)

lacking=()
for file in "${files[@]}"; do
    { IFS= read -r first && IFS= read -r second; } < "$file" || true
    [[ $first$second == *"$says"* ]] || lacking+=("$file")
done

case ${1:-} in
"")
    for file in "${lacking[@]}"; do
        case $file in
        *.c | *.cpp | *.h | *.cu | *.cuh | *.js) sed -i "1i /* $says */" "$file" ;;
        *) if [[ $(head -c 2 "$file") == '#!' ]]; then sed -i "1a # $says" "$file"; else sed -i "1i # $says" "$file"; fi ;;
        esac
    done
    echo "${#lacking[@]} of ${#files[@]} files were given their line."
    ;;
--check)
    if [ ${#lacking[@]} -gt 0 ]; then
        printf '%s: says no licence; scripts/spdx.sh adds the line\n' "${lacking[@]}" >&2
        exit 1
    fi
    echo "${#files[@]} files say their licence."
    ;;
*)
    sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
    [ "$1" = --help ] || exit 2
    ;;
esac
