# SPDX-License-Identifier: MIT
# scripts/gpu-check.sh: the build, or what a build that is there still lacks.
# shellcheck shell=bash disable=SC2154 # build, limit and logs are the script's, outcome is `within`'s

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
