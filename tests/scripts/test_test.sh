#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/test.sh: build/release, which people install from, is never built for fewer GPUs than it is for. The tools are stand-ins.
#
#   test_test.sh FOLDER      the project's folder
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/project" "$work/bin"
cp -r "$1/scripts" "$work/project/"

stand_in() { # FILE, what it does
    printf '#!/bin/sh\n%s\n' "$2" > "$1"
    chmod +x "$1"
}
stand_in "$work/project/scripts/setup.sh" 'exit 0'
for tool in cmake ctest nvcc; do stand_in "$work/bin/$tool" 'exit 0'; done

failed=0
# check NAME PRESET OPTION ARCHITECTURES NVCC: which preset it configures, with which option ('' for none), and builds and tests.
check() {
    CUDAARCHS=$4 CUDACXX=$5 PATH=$work/bin:$PATH CUDA_VISIBLE_DEVICES=0 bash "$work/project/scripts/test.sh" -R some > "$work/out" 2>&1
    for line in "cmake --preset $2${3:+ $3}" "cmake --build --preset $2 --parallel [0-9]*" \
        "ctest --preset $2 --parallel [0-9]* -R some"; do
        grep -qx -- "\\$ $line" "$work/out" || { echo "$1: '$line' is missing in:" && cat "$work/out" && failed=1; }
    done
}
stand_in "$work/bin/nvidia-smi" 'exit 9'
check "a toolkit and no GPU" narrow -DCMAKE_CUDA_ARCHITECTURES=90 "" ""
check "neither" release "" "" "$work/bin/missing"
check "a list of one's own" narrow -DCMAKE_CUDA_ARCHITECTURES=80 80 ""
stand_in "$work/bin/nvidia-smi" 'echo "GPU 0: pretended"'
check "both" release "" "" ""
PATH=$work/bin:$PATH bash "$work/project/scripts/test.sh" --help > "$work/out" 2>&1
grep -q "ctest options" "$work/out" && ! grep -q "^[$=]" "$work/out" || { echo "--help:" && cat "$work/out" && failed=1; }
exit "$failed"
