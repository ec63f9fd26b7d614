# SPDX-License-Identifier: MIT
# scripts/gpu-check.sh: compute-sanitizer's four tools on the tests of kernels, side by side.
# shellcheck shell=bash disable=SC2154 # build and logs are the script's, outcome is `within`'s

# Each tool on some of the kernel tests' cases: those that stand where its last run here ended, so that runs see ever more. Beside it the
# programs that test what the cases do not: launches that are put together, in one math mode each, math modes, a sparse matrix beyond
# 32 bits. (racecheck has no end in a minute in the last layers' kernel, which the first of these leaves out there: docs/notebook/performance.md; nor in
# the math modes' products. synccheck's list of barriers is too short for several kernels that have them, unless it is told to make it longer.)
step "compute-sanitizer on the kernel tests"
sanitizer=$(cuda_tool compute-sanitizer)
tools=(memcheck racecheck initcheck synccheck)
checks=()
for tool in "${tools[@]}"; do checks+=("$tool kernels"); done
for tool in "${tools[@]}"; do
    [ "$tool" = racecheck ] || checks+=("$tool math_modes")
    for math in fp32 tf32 fp16 bf16; do checks+=("$tool together $math"); done
done
declare -A running=()
begun=$SECONDS
seconds=$(left $((3 * sanitizer_seconds + 15)))
[ -n "$sanitizer" ] || echo "compute-sanitizer is missing: these checks are left out."

# start CHECK: in the background.
start() {
    local check=$1 tool program math log options words seed
    if [ -z "$sanitizer" ] || [ "$seconds" -le 10 ]; then return; fi
    read -r tool program math <<< "$check"
    log=$logs/$tool-$program${math:+-$math}.log
    options=(--tool "$tool" --error-exitcode 9)
    words=()
    if [ -n "$math" ]; then words=(--math "$math"); fi
    if [ "$tool" = synccheck ]; then options+=(--num-cuda-barriers 4096); fi
    if [ "$program" = kernels ]; then
        seed=$(sed -n 's/.*--seed \([0-9]*\) goes on.*/\1/p' "$log" 2> /dev/null | tail -n 1 || true)
        words=(--calculator cuda --once --seconds $((seconds < 2 * sanitizer_seconds ? seconds / 2 : sanitizer_seconds))
            --seed "${seed:-$((RANDOM % 256))}")
    fi
    run timeout --kill-after=5 "$seconds" "$sanitizer" "${options[@]}" "$build/tests/test_kernels_$program" "${words[@]}" > "$log" 2>&1 &
    running[$check]=$!
}

# finish CHECK: wait for it, and say what it found.
finish() {
    local check=$1 tool program math log name outcome status note untracked
    read -r tool program math <<< "$check"
    log=$logs/$tool-$program${math:+-$math}.log
    name=$tool
    if [ "$program" != kernels ]; then name="$tool $program${math:+ $math}"; fi
    if [ -z "$sanitizer" ]; then
        row "$name" "not run" 0 "compute-sanitizer is missing"
        return
    elif [ -z "${running[$check]:-}" ]; then
        row "$name" cut 0 "there was no time left"
        return
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
    if was_stopped "$status" && { [ "$program" != kernels ] || [ "$seconds" -lt $((3 * sanitizer_seconds + 15)) ]; }; then outcome="cut"; fi
    untracked=$(grep -c 'Internal Sanitizer Error' "$log" || true)
    if [ "$outcome" = FAILED ] && [ "$untracked" -gt 0 ] &&
        [ "$untracked" = "$(sed -n 's/^=* *ERROR SUMMARY: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)" ]; then
        outcome="cut"
        note="the tool had no memory to track $untracked launches, and found nothing in the others; $note"
    fi
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
}

for check in "${checks[@]}"; do start "$check"; done
for check in "${checks[@]}"; do finish "$check"; done
# by itself: it fills a third of a large device's memory, of which the tools take some each
seconds=$(left $((3 * sanitizer_seconds + 15)))
start "memcheck spmm_large"
finish "memcheck spmm_large"
