#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/gpu-check.sh on a pretended GPU: nvidia-smi, nvcc, cmake, ctest and compute-sanitizer are stand-ins, and the program
# computes on the host where it is asked for cuda, on little data, once: asked again, it repeats what it said. What is tested is the
# script: each row, what fails, what is left out, the exit status. Its clock is a file, in which only slow tests move it on, so that nothing
# depends on how busy the machine is.
#
#   test_gpu_check.sh FOLDER PROGRAM      the project's folder, the sdlf program
set -euo pipefail
source_folder=$1
program=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/project/build-gpu/tests" "$work/bin" "$work/said"
cp -r "$source_folder/scripts" "$work/project/"

stand_in() { # NAME, its text on standard input
    { echo '#!/usr/bin/env bash' && cat; } > "$1"
    chmod +x "$1"
}
stand_in "$work/bin/nvidia-smi" <<< 'echo "GPU 0: pretended"'
stand_in "$work/bin/nvcc" <<< 'exit 0'
# shellcheck disable=SC2016 # expanded where it runs
stand_in "$work/bin/timeout" <<< 'exec "${@:3}"'
# shellcheck disable=SC2016
stand_in "$work/bin/date" <<< 'tr -cd 0-9 <<< "$2"' # of a time from now: how far it is
# SECONDS that is unset is a variable like others: before each command it is what the file says.
export CLOCK=$work/clock
cat > "$work/clock.sh" << 'S'
unset SECONDS
set -T
trap 'read -r SECONDS < "$CLOCK"' DEBUG
S
# shellcheck disable=SC2016 # expanded where it runs
stand_in "$work/bin/cmake" <<< 'echo "--   CUDA          pretended"; exit "${FAIL_BUILD:-0}"'
stand_in "$work/bin/ctest" << 'S'
while [ "$1" != --stop-time ]; do shift; done
echo "given $2 s"
if [ -n "${SLOW_TESTS:-}" ]; then # what it says when its stop time has come
    echo "$SLOW_TESTS" > "$CLOCK"
    echo " 1/7 Test #1: a ....................   Passed    0.02 sec"
    echo " 2/7 Test #2: b ....................***Timeout   ${STOPPED_AFTER:-5.00} sec"
    echo "50% tests passed, 1 tests failed out of 2"
    printf '\t  2 - b (Timeout)\n\t  3 - c (Skipped)\n'
    exit 8
fi
echo "100% tests passed, 0 tests failed out of 7"
exit "${FAIL_TESTS:-0}"
S
stand_in "$work/bin/compute-sanitizer" << 'S'
while [ "${1#*/tests/}" = "$1" ]; do # up to the program
    if [ "$1" = --tool ]; then tool=$2; fi
    shift
done
case $1 in
*_kernels) [ "$tool" = "${FAIL_TOOL:-}" ] && echo "========= ERROR SUMMARY: 3 errors" && exit "${FAIL_STATUS:-9}"
    seed=$(sed 's/.*--seed //' <<< "$*")
    echo "9 of 90 cases in the time that was given, from --seed $seed on; --seed $((seed + 2)) goes on" ;;
*) echo "5 tests, 0 failed, 0 skipped; 50 checks"; exit "${PROGRAM_STATUS:-0}" ;;
esac
S
stand_in "$work/project/build-gpu/sdlf" << S
words=()
for word in "\$@"; do
    case \$word in
    --math | fp32 | tf32) ;; # the host has no choice
    cuda | cuda:tf32) words+=(cpu) ;;
    1024 | 64 | 16) words+=(4) ;;
    simple_cnn) words+=(lenet5) ;;
    digits) words+=(digits:60) ;;
    30 | 10) words+=(2) ;;
    *) words+=("\$word") ;;
    esac
done
case \$1-\${2:-} in
info-*) [ -z "\${FAIL_INFO:-}" ] || exit 1; echo '{ "name": "cuda", '; echo '"runs_on": "a pretended GPU", }'; exit 0 ;;
bench-placement) words+=(--device-calculator cpu --batch 4 --net lenet5) ;;
bench-epoch) words+=(--device-calculator cpu --net lenet5) ;;
bench-kernels) words+=(--operation fill --elements 4096 --copy-size 64kB) ;;
bench-conv) words=(bench conv --workload simple_cnn --rung auto --no-check --seconds 0.001 --repeats 1 --copy-size 64kB) ;;
bench-*) words+=(--copy-size 64kB --steps 2) ;;
gcn-*) words+=(--graph uniform:100,500,1 --repeats 2) ;;
esac
[ "\$1" = "\${FAIL_COMMAND:-}" ] && exit 1
said='$work/said'/\$(cksum <<< "\${words[*]}" | tr ' ' -)
if [ ! -e "\$said" ]; then
    '$program' "\${words[@]}" > "\$said.part" 2>&1 || { status=\$?; cat "\$said.part"; exit \$status; }
    mv "\$said.part" "\$said"
fi
cat "\$said"
S

failed=0
options=()
# check NAME STATUS: run the script; what it printed is in \$work/out.
check() {
    local found=0
    echo 0 > "$CLOCK"
    PATH=$work/bin:$PATH CUDACXX="" SDLF_DATA="" CUDA_VISIBLE_DEVICES=0 BASH_ENV=$work/clock.sh \
        bash "$work/project/scripts/gpu-check.sh" "${options[@]}" > "$work/out" 2>&1 || found=$?
    [ "$found" = "$2" ] || { echo "$1: exit status $found instead of $2" && tail -n 40 "$work/out" && failed=1; }
}
says() {
    grep -qE -- "$1" "$work/out" || { echo "'$1' is missing in:" && sed -n '/^== Summary/,$p' "$work/out" && failed=1; }
}

check "all is well" 0
for row in 'build  *ok .* s  pretended' 'GPU  *ok .* a pretended GPU' 'tests  *ok .* 100% tests passed' 'memcheck  *clean' \
    'racecheck  *clean' 'initcheck  *clean' 'synccheck  *clean .* 9 of 90 cases' 'memcheck together bf16  *clean .* 5 tests' 'synccheck math_modes  *clean' \
    'racecheck together tf32  *clean' 'memcheck spmm_large  *clean' 'bench kernels fp32  *ok ' 'bench conv tf32  *ok ' 'bench fp32 16  *ok .*samples/s.*; floor ' \
    'bench tf32 1024  *ok ' 'parity cuda  *ok .* simple_cnn float64: agree' 'parity cuda:tf32  *ok ' \
    'placement  *ok .* times as fast' 'epoch  *ok .* batch 4: [0-9.]+ times the host' 'gcn f64  *ok .* s  [0-9.]+' \
    'training  *not run' 'Nothing failed.'; do
    says "^$row"
done
grep -q '^given 300 s' "$work/project/build-gpu/check/tests.log" || { echo "of 450 s the tests should have 300" && failed=1; }
grep -q '^racecheck math_modes' "$work/out" && echo "racecheck has no end in the math modes' products" && failed=1
ended=$(sed -n 's/.*--seed \([0-9]*\) goes on/\1/p' "$work/project/build-gpu/check/memcheck-kernels.log")
PROGRAM_STATUS=124 check "a program has no time, and the cases go on" 3
says '^memcheck math_modes  *cut'
says "^memcheck  *clean .* from --seed $ended on"
PROGRAM_STATUS=77 check "a program has nothing to test" 0
says '^synccheck together fp32  *not run'
unset PROGRAM_STATUS
[ "$(grep -c '^== Summary' "$work/out")" = 1 ] || { echo "there is more than one summary" && failed=1; }
FAIL_TOOL=racecheck FAIL_COMMAND=parity FAIL_TESTS=8 check "some fail" 1
for row in 'tests  *FAILED' 'memcheck  *clean' 'racecheck  *FAILED .* 3 errors' 'parity cuda  *FAILED' 'gcn f32  *ok' '6 failed, 0 cut'; do
    says "^$row"
done
FAIL_BUILD=1 check "it does not compile" 1
says '^build  *FAILED'
says '^1 failed, 0 cut'
unset FAIL_BUILD
options=(--seconds 50)
FAIL_INFO=1 FAIL_TOOL=memcheck FAIL_STATUS=137 check "a tool is killed, the program fails" 1
says '^GPU  *FAILED'
says '^memcheck  *cut'
says '^1 failed, [0-9]+ cut'
unset FAIL_INFO FAIL_TOOL FAIL_STATUS
options=(--seconds 12)
SLOW_TESTS=9 STOPPED_AFTER=241.03 check "a test hangs" 1
says '^tests  *FAILED .* stopped after 241 s: b$'
unset STOPPED_AFTER
SLOW_TESTS=12 check "there is too little time" 3
for row in 'build  *ok' 'tests  *cut .* 1 of 7 passed, the others had no time' 'synccheck  *cut' 'training  *not run' \
    'Nothing failed; [0-9]+ cut for want of time'; do
    says "^$row"
done
unset SLOW_TESTS
options=(--built build-gpu)
check "what is built" 0
says '^tests  *ok'
grep -q '^build ' "$work/out" && echo "nothing should be built" && failed=1
options=(--built nowhere)
check "nothing is built there" 2
options=(--seconds some)
check "time that is none" 2
exit "$failed"
