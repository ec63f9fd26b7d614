#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Everything that needs a GPU, in one go: build, all tests, compute-sanitizer on the kernels, benchmarks, one table.
#
#   scripts/gpu-check.sh [--seconds N] [cmake option ...]     for instance: scripts/gpu-check.sh -DSDLF_GEMM=portable
#   scripts/gpu-check.sh [--seconds N] --built FOLDER         use that build unchanged: nothing is configured or compiled
#
# For times compared with PyTorch's, which need PyTorch, see scripts/compare-pytorch-training.py (compare-pytorch-gpu.py: inference). Needs
# no network and no input, and writes its logs to build-gpu/check/. Without a GPU it says so and succeeds. If SDLF_DATA names a folder with
# mnist/, three epochs of training are run, twice.
#
# It ends within N seconds (default 450, so that everything stays under 8 minutes): each part has its own time limit, and parts
# without time left are cut and reported. On a machine with few cores the build takes most of it: a second run continues with what is
# built. Exit status: 0 everything was run and nothing failed, 1 something failed, 3 nothing failed and something was cut.
. "$(dirname "$0")/common.sh"

limit=450
built=""
if [ "${1:-}" = --seconds ]; then
    [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "--seconds needs a whole number of seconds, found '${2:-}'." >&2; exit 2; }
    limit=$2
    shift 2
fi
build="build-gpu"
if [ "${1:-}" = --built ]; then
    [ -x "${2:-}/sdlf" ] || { echo "--built needs a build folder with sdlf in it, found '${2:-}'." >&2; exit 2; }
    build=$2
    built=yes
    shift 2
fi
logs=$build/check
sdlf=$build/sdlf
sanitizer_seconds=25 # of kernel cases, for each of the four tools; they and the other checked programs run in parallel
kernel_seconds=60    # of kernel cases, for each of their programs and math modes
after_tests=150      # the time that everything after the tests needs
patience=240         # a test stopped after this many seconds hangs: all of them together take less
data=digits
if [ -n "${SDLF_DATA:-}" ] && [ -d "$SDLF_DATA/mnist" ]; then data=mnist:$SDLF_DATA/mnist; fi
. scripts/gpu-check/table.sh

# The path of a tool on the PATH or in the toolkit; empty if missing.
cuda_tool() { command -v "$1" || command -v "/usr/local/cuda/bin/$1" || true; }

if ! gpu_is_there; then
    echo "There is no GPU here (nvidia-smi lists none): nothing to check."
    exit 0
fi
if [ -z "${CUDACXX:-}" ] && [ -z "$built" ]; then
    CUDACXX=$(cuda_tool nvcc)
    if [ -z "$CUDACXX" ]; then
        echo "nvcc is missing: put the CUDA Toolkit on the PATH, or set CUDACXX." >&2
        exit 1
    fi
    export CUDACXX
fi
mkdir -p "$logs"

if [ -z "$built" ]; then . scripts/gpu-check/build.sh "$@"; fi

# Written to a file, since a narrow terminal would wrap the lines.
within 30 "$logs/info.log" "$sdlf" info --json
gpu=$(sed -n '/"name": "cuda"/,/}/s/.*"runs_on": "\(.*\)",*/\1/p' "$logs/info.log" | head -n 1)
case $outcome-$gpu in
ok- | ok-"not here"*) row GPU FAILED "$spent" "${gpu:-the build has no cuda calculator}" ;;
ok-*) row GPU ok "$spent" "$gpu" ;;
*) row GPU "$outcome" "$spent" "$logs/info.log" ;;
esac

# Tests get all the time that the later parts do not need, or half of what is left. Tests that have not ended by then are stopped, and the rest
# is not started. Kernel tests, which have tens of thousands of cases, compare as many as there is time for, from a seed that they print
# (SDLF_KERNEL_SECONDS). ctest reports both a stopped test and a hanging one as (Timeout): the time it ran distinguishes them. (ctest's own
# --timeout is for tests without TIMEOUT in CMake; nearly all have one.)
step "Tests"
seconds=$(left "$limit")
seconds=$((seconds / 2 > seconds - after_tests ? seconds / 2 : seconds - after_tests))
export SDLF_KERNEL_SECONDS=$kernel_seconds
within $((seconds + 20)) "$logs/tests.log" ctest --test-dir "$build" --parallel "$(processors)" --output-on-failure \
    --stop-time "$(date -d "+$seconds seconds" +%T)" --label-exclude docs
sed -n '/tests passed/,$p' "$logs/tests.log"
note=$(grep 'tests passed' "$logs/tests.log" || echo 'not finished')
if [ "$outcome" = FAILED ]; then
    grep -E 'FAILED|\*\*\*|: failed: ' "$logs/tests.log" | head -n 40 || true
    listed=$(grep -E '^\s*[0-9]+ - .*\(.*\)' "$logs/tests.log" | grep -vE '\((Skipped|Disabled)\)' || true)
    longest=$(sed -n 's/.*\*\*\*Timeout *\([0-9]*\).*/\1/p' "$logs/tests.log" | sort -n | tail -n 1)
    if [ "${longest:-0}" -ge "$patience" ]; then
        note="$note, stopped after $longest s: $(sed -n 's/.*- \(.*\) (Timeout).*/\1/p' <<< "$listed" | paste -s -d ' ')"
    elif [ "$spent" -ge $((seconds - 2)) ] && ! grep -qvE '\((Timeout|Not Run)\)' <<< "$listed"; then
        outcome="cut"
        note="$(grep -c ' Passed ' "$logs/tests.log" || true) of $(sed -n 's/^ *[0-9]*\/\([0-9]*\) Test .*/\1/p' "$logs/tests.log" | head -n 1) passed, the others had no time"
    fi
fi
row tests "$outcome" "$spent" "$note"

. scripts/gpu-check/sanitizers.sh
. scripts/gpu-check/benchmarks.sh

if [ "$data" = digits ]; then
    echo "SDLF_DATA is not set, or has no mnist/: no training on MNIST."
    row training "not run" 0 "SDLF_DATA names no folder with mnist/"
    summary
fi

step "Training (simple_cnn, three epochs, twice: the weights must agree)"
begun=$SECONDS
worst=ok
for turn in 1 2; do
    within 60 "$logs/train-$turn.log" "$sdlf" train --net simple_cnn --calculator cuda --data "$data" --epochs 3 --no-save
    if [ "$worst" != FAILED ] && [ "$outcome" != ok ]; then worst=$outcome; fi
    grep '^epoch' "$logs/train-$turn.log" || tail -n 5 "$logs/train-$turn.log"
done
weights() { sed -n 's/.*weights \([0-9a-f]\{8\}\).*/\1/p' "$1"; }
note=$(grep '^epoch 3/3' "$logs/train-1.log" | tail -n 1 || true)
if [ "$worst" = ok ] && [ "$(weights "$logs/train-1.log")" != "$(weights "$logs/train-2.log")" ]; then
    worst=FAILED
    note="two runs gave other weights; $note"
fi
row training "$worst" $((SECONDS - begun)) "$note"
summary
