#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Are programs and shared libraries built as cmake/SdlfHarden.cmake says? Programs are position-independent; relocations are
# read-only and all done at the start; and what has the library in it has canaries and, where a level is given, calls of FORTIFY.
#
# Beside the program, FULL: functions begin as indirect jumps need them (x86-64), and undefined behaviour has a trap to end in.
#
#   hardening.sh LEVEL FOLDER [FULL]   FORTIFY's level, or ""; every ELF file below the folder that this project made
set -euo pipefail
level=$1
folder=$2
full=${3:-}
files=0
libraries=0
failed=0

# expect FILE WHAT PATTERN TEXT
expect() {
    grep -qE -- "$3" <<< "$4" && return
    printf '%s: no %s\n' "$1" "$2"
    failed=$((failed + 1))
}

while IFS= read -r -d '' file; do
    about=$(readelf -hldW "$file" 2> /dev/null) || continue
    case $about in *NEEDED*) ;; *) continue ;; esac
    files=$((files + 1))
    expect "$file" "RELRO" 'GNU_RELRO' "$about"
    expect "$file" "BIND_NOW" '\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW' "$about"
    case $about in *'program interpreter'*) expect "$file" "PIE" '\(FLAGS_1\).* PIE' "$about" ;; esac
    case ${file##*/} in
    sdlf | libsdlf.so* | libsdlf_tests.so)
        libraries=$((libraries + 1))
        symbols=$(readelf --dyn-syms -W "$file")
        expect "$file" "stack protector" ' __stack_chk_fail' "$symbols"
        [ -z "$level" ] || expect "$file" "FORTIFY" ' __v?snprintf_chk' "$symbols"
        ;;
    esac
    if [ "$full" = FULL ] && [ "${file##*/}" = sdlf ] && [ "$(uname -m)" = x86_64 ]; then
        main=$(objdump -d --disassemble=main "$file")
        expect "$file" "control-flow protection" 'endbr64' "$main"
        expect "$file" "trap on undefined behaviour" '\bud[12]' "$(objdump -d --disassemble=config_expand "$file")"
    fi
done < <(find "$folder" -name CMakeFiles -prune -o -type f \( -perm -u+x -o -name '*.so*' \) -print0)

if [ "$libraries" -eq 0 ]; then
    echo "there is nothing below $folder that has the library in it"
    exit 1
fi
[ "$failed" -eq 0 ] || exit 1
echo "$files programs and libraries are hardened."
