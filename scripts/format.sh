#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Format every tracked C, C++, header and CUDA file with clang-format.
#
#   scripts/format.sh            change the files
#   scripts/format.sh --check    change nothing; fail, naming the files, if something would change
#
# The format is that of clang-format 14: other versions differ slightly, so --check accepts only 14.
. "$(dirname "$0")/common.sh"

formatter=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$formatter" ]; then
    echo "clang-format is not installed; scripts/setup.sh --dev installs it." >&2
    exit 1
fi
version=$("$formatter" --version | sed -E 's/.*version ([0-9]+).*/\1/')
mapfile -d '' files < <(git ls-files -z -- '*.c' '*.cpp' '*.h' '*.cu' '*.cuh')

case ${1:-} in
"")
    [ "$version" = 14 ] || echo "clang-format $version is not 14: it may lay lines out that 14 would not."
    "$formatter" -i "${files[@]}"
    ;;
--check)
    if [ "$version" != 14 ]; then
        echo "clang-format $version found, 14 needed for --check." >&2
        exit 1
    fi
    "$formatter" --dry-run --Werror "${files[@]}"
    echo "${#files[@]} files are laid out as .clang-format says."
    ;;
*)
    sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
    [ "$1" = --help ] || exit 2
    ;;
esac
