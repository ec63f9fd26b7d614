#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Is every public function that takes a pointer called with NULL by a test? The tests are those of tests/framework/nulls; what each
# answers is theirs to check. A layer's function may be called by the layer's own test instead, which checks it (check_output).
#
#   nulls.sh FOLDER      the project's folder
set -euo pipefail
cd "$1"

# One prototype a line: comments, preprocessor lines and bodies of structs taken out.
prototypes() {
    cat framework/include/sdlf/*.h framework/include/sdlf/*/*.h | sed -e 's,/\*.*\*/,,' |
        awk '/\/\*/ { sub(/\/\*.*/, ""); print; inside = 1; next } inside { if (/\*\//) inside = 0; next } { print }' |
        sed -e '/^ *#/d' | tr '\n' ' ' | tr ';{}' '\n\n\n' |
        grep -v typedef | grep -oE '\bsdlf_[a-z0-9_]+\([^()]*\)' || true
}

missing=0
functions=0
while IFS='(' read -r name arguments; do
    case $arguments in
    *\**) ;;
    *) continue ;;
    esac
    case $name in
    sdlf_fail | sdlf_fail_context) continue ;; # variadic: a format that is NULL is the compiler's to find
    esac
    functions=$((functions + 1))
    tests=(tests/framework/nulls/*.c)
    if grep -qE "\b$name\(" framework/include/sdlf/layers/*.h; then tests+=(tests/layers/*.c); fi
    if ! grep -qE "\b$name\(" "${tests[@]}"; then
        echo "$name takes a pointer, and no test of tests/framework/nulls calls it with NULL"
        missing=$((missing + 1))
    fi
done < <(prototypes | grep -vE '\b(SDLF_PRINTF|sdlf_shape)\(' | sort -u)

if [ "$functions" -lt 150 ]; then
    echo "only $functions functions were found in the public headers: this script reads them wrongly"
    exit 1
fi
[ "$missing" -eq 0 ] || exit 1
echo "All $functions public functions that take a pointer are called with NULL."
