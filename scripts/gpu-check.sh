#!/usr/bin/env bash
# Everything that needs a GPU, in one go: build, all tests, compute-sanitizer on the kernels, benchmarks, one table.
#
#   scripts/gpu-check.sh [cmake option ...]     for instance: scripts/gpu-check.sh -DSDLF_GEMM=portable
#
# Needs no network and no input, takes under 8 minutes, and leaves its logs in build-gpu/check/. Without a GPU it says so and
# ends well. Where SDLF_DATA names a folder with mnist/, three epochs of training are run, twice. The exit status is 0 if
# nothing failed.
. "$(dirname "$0")/common.sh"

build="build-gpu"
logs=$build/check
sdlf=$build/sdlf
sanitizer_seconds=25 # of cases, for each of the four tools
failed=0
table=""

# row NAME OUTCOME SECONDS NOTE: one line of the table; FAILED counts.
row() {
    table+=$(printf '%-20s %-8s %5s s  %s' "$1" "$2" "$3" "$4")$'\n'
    if [ "$2" = FAILED ]; then failed=$((failed + 1)); fi
}

# The last thing that happens.
summary() {
    printf '\n== Summary (%d s)\n%s' "$SECONDS" "$table"
    if [ "$failed" -gt 0 ]; then
        echo "$failed failed; the logs are in $logs/"
        exit 1
    fi
    echo "Nothing failed."
    exit 0
}

gpu_is_there() {
    if [ -n "${CUDA_VISIBLE_DEVICES+set}" ] && [ -z "$CUDA_VISIBLE_DEVICES" ]; then return 1; fi
    command -v nvidia-smi > /dev/null && nvidia-smi -L 2> /dev/null | grep -q '^GPU '
}

# A tool on the PATH or among the toolkit's; nothing where it is missing.
cuda_tool() { command -v "$1" || command -v "/usr/local/cuda/bin/$1" || true; }

if ! gpu_is_there; then
    echo "There is no GPU here (nvidia-smi lists none): nothing to check."
    exit 0
fi
if [ -z "${CUDACXX:-}" ]; then
    CUDACXX=$(cuda_tool nvcc)
    if [ -z "$CUDACXX" ]; then
        echo "nvcc is missing: put the CUDA Toolkit on the PATH, or set CUDACXX." >&2
        exit 1
    fi
    export CUDACXX
fi
mkdir -p "$logs"

step "Build ($build)"
begun=$SECONDS
generator=()
if [ -f "$build/CMakeCache.txt" ]; then
    echo "Going on with the build that is there."
elif command -v ninja > /dev/null; then
    generator=(-G Ninja)
else
    echo "ninja is missing: building with make."
fi
if run cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DSDLF_CUDA=ON "$@" > "$logs/configure.log" 2>&1 &&
    run cmake --build "$build" --parallel "$(processors)" > "$logs/build.log" 2>&1; then
    sed -n '/^-- sdlf /,/^-- Configuring/p' "$logs/configure.log"
    row build ok $((SECONDS - begun)) "$(sed -n 's/^--   CUDA  *//p' "$logs/configure.log")"
else
    tail -n 30 "$logs/configure.log" "$logs/build.log" 2> /dev/null || true
    row build FAILED $((SECONDS - begun)) "$logs/configure.log, $logs/build.log"
    summary
fi

# On a narrow terminal the lines would be broken: a file is never one.
"$sdlf" info --json > "$logs/info.json"
gpu=$(sed -n '/"name": "cuda"/,/}/s/.*"runs_on": "\(.*\)",*/\1/p' "$logs/info.json" | head -n 1)
case $gpu in
"" | "not here"*) row GPU FAILED 0 "${gpu:-the build has no cuda calculator}" ;;
*) row GPU ok 0 "$gpu" ;;
esac

step "Tests"
begun=$SECONDS
outcome=ok
run timeout 240 ctest --test-dir "$build" --parallel "$(processors)" --output-on-failure --label-exclude docs \
    > "$logs/tests.log" 2>&1 || outcome=FAILED
sed -n '/tests passed/,$p' "$logs/tests.log"
if [ "$outcome" = FAILED ]; then grep -E 'FAILED|\*\*\*|: failed: ' "$logs/tests.log" | head -n 40 || true; fi
row tests "$outcome" $((SECONDS - begun)) "$(grep 'tests passed' "$logs/tests.log" || echo 'not finished')"

step "compute-sanitizer on the kernel tests"
sanitizer=$(cuda_tool compute-sanitizer)
[ -n "$sanitizer" ] || echo "compute-sanitizer is missing: these checks are left out."
for tool in memcheck racecheck initcheck synccheck; do
    if [ -z "$sanitizer" ]; then
        row "$tool" "not run" 0 "compute-sanitizer is missing"
        continue
    fi
    begun=$SECONDS
    log=$logs/$tool.log
    outcome=clean
    run timeout $((2 * sanitizer_seconds + 30)) "$sanitizer" --tool "$tool" --error-exitcode 9 \
        "$build/tests/test_kernels_kernels" --calculator cuda --once --seconds "$sanitizer_seconds" > "$log" 2>&1 ||
        outcome=FAILED
    note=$(grep 'cases in the time' "$log" || echo "not finished: $log")
    if [ "$outcome" = FAILED ]; then
        note="$(sed -n 's/^=* *ERROR SUMMARY: //p' "$log" | tail -n 1); $note"
        if grep -q 'Device not supported' "$log"; then
            outcome="not run"
            note="compute-sanitizer does not support this device or driver"
        else
            grep -E '^=========|failed|FAILED' "$log" | head -n 20 || true
        fi
    fi
    echo "$tool: $outcome, $note"
    row "$tool" "$outcome" $((SECONDS - begun)) "$note"
done

step "Benchmarks (simple_cnn)"
data=digits
if [ -n "${SDLF_DATA:-}" ] && [ -d "$SDLF_DATA/mnist" ]; then data=mnist:$SDLF_DATA/mnist; fi
for math in fp32 tf32; do
    for batch in 16 64 1024; do
        begun=$SECONDS
        log=$logs/bench-$math-$batch.log
        if run timeout 60 "$sdlf" bench --net simple_cnn --calculator cuda --math "$math" --batch "$batch" --data "$data" \
            --repeats 10 > "$log" 2>&1; then
            note="$(sed -n 's/^epoch *//p' "$log"); floor $(sed -n 's/^floor *//p' "$log")"
            row "bench $math $batch" ok $((SECONDS - begun)) "$note"
            sed -n '/^epoch/,$p' "$log"
        elif grep -q "has no $math" "$log"; then
            row "bench $math $batch" "not run" $((SECONDS - begun)) "this GPU has no $math"
        else
            tail -n 5 "$log"
            row "bench $math $batch" FAILED $((SECONDS - begun)) "$log"
        fi
    done
done

step "Parity (cpu against cuda) and placement"
for what in "cuda simple_cnn float32" "cuda lenet5 float32" "cuda simple_cnn float64" "cuda:tf32 simple_cnn float32"; do
    read -r side net dtype <<< "$what"
    begun=$SECONDS
    log=$logs/parity-${side/:/-}-$net-$dtype.log
    outcome=ok
    run timeout 60 "$sdlf" parity --a cpu --b "$side" --net "$net" --dtype "$dtype" --batch 64 --data "$data" > "$log" 2>&1 ||
        outcome=FAILED
    if [ "$outcome" = FAILED ] && grep -q "has no tf32" "$log"; then outcome="not run"; fi
    row "parity $side" "$outcome" $((SECONDS - begun)) "$net $dtype: $(tail -n 1 "$log")"
done
begun=$SECONDS
log=$logs/placement.log
if run timeout 90 "$sdlf" bench placement --iterations 10 --data "$data" --svg "$logs/placement.svg" > "$log" 2>&1; then
    row placement ok $((SECONDS - begun)) "$(sed -n 's/^limit *//p' "$log" | tail -n 1)"
    sed -n '/^batch/,$p' "$log"
else
    tail -n 5 "$log"
    row placement FAILED $((SECONDS - begun)) "$log"
fi

step "An epoch on host and device, layer by layer"
begun=$SECONDS
log=$logs/epoch.log
if run timeout 90 "$sdlf" bench epoch --batch 64 --batch 1024 --steps 30 --repeats 3 --data "$data" > "$log" 2>&1; then
    sed -n '/^epoch/,/^$/p; /^  batch/,/^$/p' "$log"
    row epoch ok $((SECONDS - begun)) "$(awk '/^  batch/ { under = 1; next } !NF { under = 0 }
        under { printf "%sbatch %s: %s times the host", sep, $1, $NF; sep = ", " }' "$log")"
else
    tail -n 5 "$log"
    row epoch FAILED $((SECONDS - begun)) "$log"
fi

step "Graph convolution (281,903 nodes)"
for dtype in f64 f32; do
    begun=$SECONDS
    log=$logs/gcn-$dtype.log
    if run timeout 60 "$sdlf" gcn infer --calculator cuda --dtype "$dtype" > "$log" 2>&1; then
        sed -n '/^  operation/,/^  all/p' "$log"
        row "gcn $dtype" ok $((SECONDS - begun)) "$(sed -n 's/^  all together  *//p' "$log") ms"
    else
        tail -n 5 "$log"
        row "gcn $dtype" FAILED $((SECONDS - begun)) "$log"
    fi
done

if [ "$data" = digits ]; then
    echo "SDLF_DATA is not set, or has no mnist/: no training on MNIST."
    row training "not run" 0 "SDLF_DATA names no folder with mnist/"
    summary
fi

step "Training (simple_cnn, three epochs, twice: the weights must agree)"
begun=$SECONDS
outcome=ok
for turn in 1 2; do
    run timeout 120 "$sdlf" train --net simple_cnn --calculator cuda --data "$data" --epochs 3 --no-save \
        > "$logs/train-$turn.log" 2>&1 || outcome=FAILED
    grep '^epoch' "$logs/train-$turn.log" || tail -n 5 "$logs/train-$turn.log"
done
weights() { sed -n 's/.*weights \([0-9a-f]\{8\}\).*/\1/p' "$1"; }
note=$(grep '^epoch 3/3' "$logs/train-1.log" | tail -n 1 || true)
if [ "$(weights "$logs/train-1.log")" != "$(weights "$logs/train-2.log")" ]; then
    outcome=FAILED
    note="two runs gave other weights; $note"
fi
row training "$outcome" $((SECONDS - begun)) "$note"
summary
