#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Install what is missing, build, and run every test.
#
#   scripts/test.sh [ctest options]     for instance: scripts/test.sh -R layers
#
# Tests on real data look in the folder that SDLF_DATA names, and are skipped without it.
. "$(dirname "$0")/common.sh"

case ${1:-} in
-h | --help) sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0" && exit 0 ;;
esac

step "Packages"
scripts/setup.sh

# Kernels for all GPUs take long to compile, and without a GPU nothing here runs them. A build for fewer has its own folder: people
# install from build/release, and CMake would keep the short list there.
preset=release
options=()
architectures=${CUDAARCHS:-}
if [ -z "$architectures" ] && ! gpu_is_there && command -v "${CUDACXX:-nvcc}" > /dev/null; then
    echo "There is no GPU here: kernels for GPUs are compiled for one architecture alone."
    architectures=90
fi
if [ -n "$architectures" ]; then
    preset=narrow
    options=("-DCMAKE_CUDA_ARCHITECTURES=$architectures")
fi

step "Build (build/$preset)"
run cmake --preset "$preset" "${options[@]}"
run cmake --build --preset "$preset" --parallel "$(processors)"

step "Tests"
[ -n "${SDLF_DATA:-}" ] || echo "SDLF_DATA is not set: tests on real data will skip."
run ctest --preset "$preset" --parallel "$(processors)" "$@"
