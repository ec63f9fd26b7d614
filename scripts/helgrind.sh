#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs Valgrind's Helgrind on everything that shares memory between threads: the loader and its workers, prefetching, the thread pool, two
# trainings in two threads, and several processes with one plan file, each of them under Helgrind. ThreadSanitizer (.ci/run tsan) sees only
# code compiled with it; Helgrind also sees what libraries do, but reports atomic operations as races. tests/helgrind.supp lists the
# known reports and why they are not races. Everything runs at level plain, which Valgrind can run.
#
#   scripts/helgrind.sh [--build FOLDER] [TEST ...]     (default: build/release; all)
#
# It takes about ten minutes. Exit status: 0 if nothing was found.
. "$(dirname "$0")/common.sh"

build=build/release tests=()
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2 && shift 2 ;;
    -*)
        sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
        [ "$1" = --help ] && exit 0 || exit 2
        ;;
    *) tests+=("$1") && shift ;;
    esac
done
command -v valgrind > /dev/null || { echo "$0: Valgrind is missing (package valgrind)" >&2 && exit 2; }
[ ${#tests[@]} -gt 0 ] || tests=(loader prefetch parallel queues two_threads plan_file)

root=$PWD build=$(realpath "$build") work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SDLF_SIMD=plain OMP_NUM_THREADS=2
failed=0

helgrind() {
    valgrind --tool=helgrind --history-level=approx --suppressions="$root/tests/helgrind.supp" --error-exitcode=99 --trace-children=no "$@"
}

# beneath NAME PROGRAM WORD...: runs one program under Helgrind and shows its findings.
beneath() {
    local name=$1 status=0 begun=$SECONDS
    helgrind "${@:2}" > "$work/$name" 2>&1 || status=$?
    [ "$status" -eq 0 ] || { cat "$work/$name" && failed=1; }
    printf '%-12s %s, %d s\n' "$name" "$(grep 'ERROR SUMMARY' "$work/$name" | tail -n 1 | sed 's/.*SUMMARY: //')" $((SECONDS - begun))
}

# Three processes concurrently read, extend and write one plan file.
share_a_plan_file() {
    local i processes=()
    for i in 1 2 3; do
        beneath "plan_file.$i" "$build/sdlf" bench --net mlp --data digits:64 --batch $((8 * i)) --steps 2 --repeats 1 --copy-size 1MB \
            --threads 1 --plan-file "$work/plan.txt" &
        processes+=($!)
    done
    for i in "${processes[@]}"; do wait "$i" || failed=1; done
    for i in 1 2 3; do grep -q 'ERROR SUMMARY: 0 errors' "$work/plan_file.$i" || failed=1; done
    [ -s "$work/plan.txt" ] || { echo "plan_file: there is none" && failed=1; }
}

for name in "${tests[@]}"; do
    case $name in
    two_threads) beneath "$name" "$build/apps/examples/two_threads" ;;
    plan_file) share_a_plan_file ;;
    *) beneath "$name" "$build/tests/test_framework_$name" ;;
    esac
done
exit "$failed"
