#!/usr/bin/env bash
# Install what is missing, build, and run every test.
#
#   scripts/test.sh [ctest options]     for instance: scripts/test.sh -R layers
#
# Tests that want real data look in the folder that SDLF_DATA names, and skip without.
. "$(dirname "$0")/common.sh"

step "Packages"
scripts/setup.sh

step "Build (build/release)"
if ! gpu_is_there && [ -z "${CUDAARCHS:-}" ]; then
    echo "There is no GPU here: kernels for GPUs, where there is a CUDA Toolkit, are compiled for one architecture alone."
    export CUDAARCHS=90
fi
run cmake --preset release -DSDLF_CUDA=AUTO # the quickstart may have left it out
run cmake --build --preset release --parallel "$(processors)"

step "Tests"
[ -n "${SDLF_DATA:-}" ] || echo "SDLF_DATA is not set: tests on real data will skip."
run ctest --preset release --parallel "$(processors)" "$@"
