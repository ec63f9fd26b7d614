#!/usr/bin/env bash
# Everything that needs a GPU, in one go: build, all tests, compute-sanitizer on the kernels, benchmarks, one table.
#
#   scripts/gpu-check.sh [--seconds N] [cmake option ...]     for instance: scripts/gpu-check.sh -DSDLF_GEMM=portable
#
# Times beside PyTorch's are another script's, which needs PyTorch: scripts/compare-pytorch-training.py (compare-pytorch-gpu.py: inference).
# Needs no network and no input, and leaves its logs in build-gpu/check/. Without a GPU it says so and ends well. Where SDLF_DATA
# names a folder with mnist/, three epochs of training are run, twice.
#
# It ends within N seconds (450 where nothing is said, so that all of it stays under 8 minutes): each part has a time of its own, and
# what there is no time for is cut and told. On a machine of few cores the build takes most of it: run it again, and it goes on with
# what is built. Exit status: 0 all was run and nothing failed, 1 something failed, 3 nothing failed and something was cut.
. "$(dirname "$0")/common.sh"

limit=450
if [ "${1:-}" = --seconds ]; then
    [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "--seconds needs a whole number of seconds, found '${2:-}'." >&2; exit 2; }
    limit=$2
    shift 2
fi
build="build-gpu"
logs=$build/check
sdlf=$build/sdlf
sanitizer_seconds=25 # of kernel cases, for each of the four tools; they and the other checked programs run side by side
after_tests=170      # what all that comes behind the tests needs
patience=150         # a test that is stopped after so many seconds hangs: all of them together take less
failed=0
cut=0
table=""

# row NAME OUTCOME SECONDS NOTE: one line of the table; FAILED and cut count.
row() {
    table+=$(printf '%-20s %-8s %5s s  %s' "$1" "$2" "$3" "$4")$'\n'
    case $2 in
    FAILED) failed=$((failed + 1)) ;;
    cut) cut=$((cut + 1)) ;;
    esac
}

# The last thing that happens.
summary() {
    printf '\n== Summary (%d s of %d)\n%s' "$SECONDS" "$limit" "$table"
    if [ "$failed" -gt 0 ]; then
        echo "$failed failed, $cut cut for want of time; the logs are in $logs/"
        exit 1
    fi
    if [ "$cut" -gt 0 ]; then
        echo "Nothing failed; $cut cut for want of time. Run it again, with --seconds N for more."
        exit 3
    fi
    echo "Nothing failed."
    exit 0
}

# left SECONDS: so many seconds, or how many there still are.
left() { echo $((limit - SECONDS < $1 ? (limit - SECONDS > 0 ? limit - SECONDS : 0) : $1)); }

# Is it the exit status of a command that `timeout` stopped, or had to kill?
was_stopped() { [ "$1" = 124 ] || [ "$1" = 137 ]; }

# within SECONDS LOG COMMAND...: run it, its output in LOG. Afterwards `outcome` is ok, FAILED, or cut where it was given less than
# its SECONDS and would have needed more; `spent` is what it took.
within() {
    local most=$1 log=$2 given begun=$SECONDS status=0
    given=$(left "$most")
    shift 2
    outcome=ok
    if [ "$given" -lt 2 ]; then
        echo "There was no time left." > "$log"
        outcome="cut"
    else
        run timeout --kill-after=5 "$given" "$@" > "$log" 2>&1 || status=$?
        if [ "$status" != 0 ]; then outcome=FAILED; fi
        if was_stopped "$status"; then
            echo "It was stopped after $given s." >> "$log"
            if [ "$given" -lt "$most" ]; then outcome="cut"; fi
        fi
    fi
    spent=$((SECONDS - begun))
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
within 120 "$logs/configure.log" cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DSDLF_CUDA=ON "$@"
if [ "$outcome" = ok ]; then
    within "$limit" "$logs/build.log" cmake --build "$build" --parallel "$(processors)"
fi
if [ "$outcome" = ok ]; then
    sed -n '/^-- sdlf /,/^-- Configuring/p' "$logs/configure.log"
    row build ok $((SECONDS - begun)) "$(sed -n 's/^--   CUDA  *//p' "$logs/configure.log")"
else
    tail -n 30 "$logs/configure.log" "$logs/build.log" 2> /dev/null || true
    row build "$outcome" $((SECONDS - begun)) "$logs/configure.log, $logs/build.log"
    summary
fi

# On a narrow terminal the lines would be broken: a file is never one.
within 30 "$logs/info.log" "$sdlf" info --json
gpu=$(sed -n '/"name": "cuda"/,/}/s/.*"runs_on": "\(.*\)",*/\1/p' "$logs/info.log" | head -n 1)
case $outcome-$gpu in
ok- | ok-"not here"*) row GPU FAILED "$spent" "${gpu:-the build has no cuda calculator}" ;;
ok-*) row GPU ok "$spent" "$gpu" ;;
*) row GPU "$outcome" "$spent" "$logs/info.log" ;;
esac

# They have all the time that what comes behind them does not need, or half of what there is. Tests that have not ended then are
# stopped, and the rest is not begun. ctest calls both that and a test that never ends (Timeout): how long it ran tells them apart.
# (ctest's own --timeout is for tests that have no TIMEOUT in CMake; nearly all have.)
step "Tests"
seconds=$(left "$limit")
seconds=$((seconds / 2 > seconds - after_tests ? seconds / 2 : seconds - after_tests))
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

# Each tool on some of the kernel tests' cases: those that stand where its last run here ended, so that a few runs see all. Beside it the
# programs that test what the cases do not: launches that are put together, rounded factors, a sparse matrix beyond 32 bits.
# (racecheck has no end in the first of these in a minute: docs/performance.md; nor in the factors' products.)
step "compute-sanitizer on the kernel tests"
sanitizer=$(cuda_tool compute-sanitizer)
tools=(memcheck racecheck initcheck synccheck)
checks=()
for tool in "${tools[@]}"; do checks+=("$tool kernels"); done
for tool in memcheck initcheck synccheck; do checks+=("$tool factors" "$tool together"); done
checks+=("memcheck spmm_large")
declare -A running=()
begun=$SECONDS
seconds=$(left $((2 * sanitizer_seconds + 10)))
[ -n "$sanitizer" ] || echo "compute-sanitizer is missing: these checks are left out."
for check in "${checks[@]}"; do
    if [ -z "$sanitizer" ] || [ "$seconds" -le 10 ]; then break; fi
    read -r tool program <<< "$check"
    log=$logs/$tool-$program.log
    words=()
    if [ "$program" = kernels ]; then
        seed=$(sed -n 's/.*--seed \([0-9]*\) goes on.*/\1/p' "$log" 2> /dev/null | tail -n 1 || true)
        words=(--calculator cuda --once --seconds $((seconds < 2 * sanitizer_seconds ? seconds / 2 : sanitizer_seconds))
            --seed "${seed:-$((RANDOM % 256))}")
    fi
    run timeout --kill-after=5 "$seconds" "$sanitizer" --tool "$tool" --error-exitcode 9 "$build/tests/test_kernels_$program" "${words[@]}" \
        > "$log" 2>&1 &
    running[$check]=$!
done
for check in "${checks[@]}"; do
    read -r tool program <<< "$check"
    log=$logs/$tool-$program.log
    name=$tool
    if [ "$program" != kernels ]; then name="$tool $program"; fi
    if [ -z "$sanitizer" ]; then
        row "$name" "not run" 0 "compute-sanitizer is missing"
        continue
    elif [ -z "${running[$check]:-}" ]; then
        row "$name" cut 0 "there was no time left"
        continue
    fi
    outcome=clean
    status=0
    wait "${running[$check]}" || status=$?
    if [ "$program" = kernels ]; then
        note=$(grep 'cases in the time' "$log" || echo "not finished: $log")
    else
        note=$(grep 'tests, .* failed' "$log" || echo "not finished: $log")
    fi
    if [ "$status" = 77 ]; then outcome="not run"; elif [ "$status" != 0 ]; then outcome=FAILED; fi
    # the cases know their time; the other programs take what they take
    if was_stopped "$status" && { [ "$program" != kernels ] || [ "$seconds" -lt $((2 * sanitizer_seconds + 10)) ]; }; then outcome="cut"; fi
    if [ "$outcome" = FAILED ]; then
        note="$(sed -n 's/^=* *ERROR SUMMARY: //p' "$log" | tail -n 1); $note"
        if grep -q 'Device not supported' "$log"; then
            outcome="not run"
            note="compute-sanitizer does not support this device or driver"
        else
            grep -E '^=========|failed|FAILED' "$log" | head -n 20 || true
        fi
    fi
    echo "$name: $outcome, $note"
    row "$name" "$outcome" $((SECONDS - begun)) "$note"
done

step "Benchmarks (simple_cnn)"
data=digits
if [ -n "${SDLF_DATA:-}" ] && [ -d "$SDLF_DATA/mnist" ]; then data=mnist:$SDLF_DATA/mnist; fi
for math in fp32 tf32; do
    for batch in 16 64 1024; do
        log=$logs/bench-$math-$batch.log
        within 30 "$log" "$sdlf" bench --net simple_cnn --calculator cuda --math "$math" --batch "$batch" --data "$data" --repeats 10
        note=$log
        if [ "$outcome" = ok ]; then
            note="$(sed -n 's/^epoch *//p' "$log"); floor $(sed -n 's/^floor *//p' "$log")"
            sed -n '/^epoch/,$p' "$log"
        elif grep -q "has no $math" "$log"; then
            outcome="not run"
            note="this GPU has no $math"
        else
            tail -n 5 "$log"
        fi
        row "bench $math $batch" "$outcome" "$spent" "$note"
    done
done

# Every kernel beside the limits, and what auto takes of simple_cnn's, VGG16's and MobileNetV2's convolutions: few samples each.
step "Benchmarks (kernels, convolutions)"
for what in "kernels" "conv --workload networks --rung auto --no-check"; do
    read -r -a words <<< "$what"
    for math in fp32 tf32; do
        log=$logs/bench-${words[0]}-$math.log
        within 40 "$log" "$sdlf" bench "${words[@]}" --calculator cuda --math "$math" --seconds 0.003 --repeats 3
        if [ "$outcome" = ok ]; then
            note="$(sed -n 's/^limits *//p' "$log" | head -n 1); $log"
        elif grep -q "has no $math" "$log"; then
            outcome="not run"
            note="this GPU has no $math"
        else
            note=$log
            tail -n 5 "$log"
        fi
        row "bench ${words[0]} $math" "$outcome" "$spent" "$note"
    done
done

step "Parity (cpu against cuda) and placement"
for what in "cuda simple_cnn float32" "cuda lenet5 float32" "cuda simple_cnn float64" "cuda:tf32 simple_cnn float32"; do
    read -r side net dtype <<< "$what"
    log=$logs/parity-${side/:/-}-$net-$dtype.log
    within 30 "$log" "$sdlf" parity --a cpu --b "$side" --net "$net" --dtype "$dtype" --batch 64 --data "$data"
    if [ "$outcome" = FAILED ] && grep -q "has no tf32" "$log"; then outcome="not run"; fi
    row "parity $side" "$outcome" "$spent" "$net $dtype: $(tail -n 1 "$log")"
done
log=$logs/placement.log
within 90 "$log" "$sdlf" bench placement --iterations 10 --data "$data" --svg "$logs/placement.svg"
if [ "$outcome" = ok ]; then
    row placement ok "$spent" "$(sed -n 's/^limit *//p' "$log" | tail -n 1)"
    sed -n '/^batch/,$p' "$log"
else
    tail -n 5 "$log"
    row placement "$outcome" "$spent" "$log"
fi

step "An epoch on host and device, layer by layer"
log=$logs/epoch.log
within 60 "$log" "$sdlf" bench epoch --batch 64 --batch 1024 --steps 30 --repeats 3 --data "$data"
if [ "$outcome" = ok ]; then
    sed -n '/^epoch/,/^$/p; /^  batch/,/^$/p' "$log"
    row epoch ok "$spent" "$(awk '/^  batch/ { under = 1; next } !NF { under = 0 }
        under { printf "%sbatch %s: %s times the host", sep, $1, $NF; sep = ", " }' "$log")"
else
    tail -n 5 "$log"
    row epoch "$outcome" "$spent" "$log"
fi

step "Graph convolution (281,903 nodes)"
for dtype in f64 f32; do
    log=$logs/gcn-$dtype.log
    within 30 "$log" "$sdlf" gcn infer --calculator cuda --dtype "$dtype"
    if [ "$outcome" = ok ]; then
        sed -n '/^  operation/,/^  all/p' "$log"
        row "gcn $dtype" ok "$spent" "$(sed -n 's/^  all together  *//p' "$log") ms"
    else
        tail -n 5 "$log"
        row "gcn $dtype" "$outcome" "$spent" "$log"
    fi
done

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
