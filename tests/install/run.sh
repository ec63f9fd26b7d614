#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh BUILD_FOLDER C_COMPILER: install a finished build into a temporary folder, move it, then build and run a program
# outside the tree twice, by find_package and by pkg-config. Works for static and for shared libraries.
set -euo pipefail

build=$1
compiler=$2
here=$(cd "$(dirname "$0")" && pwd)
consumer=$here/consumer
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

say() { printf '\n-- %s\n' "$*"; }

say "install"
cmake --install "$build" --prefix "$temporary/first" > "$temporary/install.log" || { cat "$temporary/install.log"; exit 1; }
mv "$temporary/first" "$temporary/moved" # nothing may remember where it was installed
prefix=$temporary/moved
libraries=$(dirname "$(find "$prefix" -name 'libsdlf.*' | head -1)")
if grep -rIl "$build\|$temporary/first" "$prefix/include" "$libraries/cmake" "$libraries/pkgconfig"; then
    echo "these installed files name the build folder or the first prefix" && exit 1
fi

say "what was installed"
library=$(find "$libraries" -maxdepth 1 -name 'libsdlf.a' -o -maxdepth 1 -name 'libsdlf.so')
cmp "$prefix/share/licenses/sdlf/LICENSE" "$here/../../LICENSE"
bash "$here/symbols.sh" "$prefix/include" "$library" "$compiler"
bash "$here/../cmake/search_paths.sh" "$prefix"

private=$(dirname "$("$compiler" -print-file-name=libgcc.a)") # another compiler, or another version of it, has another one
if grep -nE "$private|/(gcc|clang|llvm)[-/0-9]" "$libraries/pkgconfig/sdlf.pc"; then
    echo "sdlf.pc names a folder that is the compiler's own" && exit 1
fi

say "a program that uses find_package"
cmake -S "$consumer" -B "$temporary/find_package" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$compiler" > /dev/null
cmake --build "$temporary/find_package"
(cd "$temporary" && find_package/consumer)

say "a program that uses pkg-config"
export PKG_CONFIG_PATH=$libraries/pkgconfig
read -ra flags <<< "$(pkg-config --cflags --libs sdlf)"
"$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror "$consumer/consumer.c" "$consumer/own_names.c" -o "$temporary/consumer" "${flags[@]}"
(cd "$temporary" && LD_LIBRARY_PATH=$libraries ./consumer)

say "the program of the README, on fewer digits"
sed -n '/^```c example.c/,/^```$/p' "$here/../../README.md" | sed '/^```/d; s/"digits"/"digits:640"/' > "$temporary/example.c"
read -ra flags <<< "$(pkg-config --cflags --libs sdlf)"
"$compiler" "$temporary/example.c" -o "$temporary/example" "${flags[@]}"
(cd "$temporary" && LD_LIBRARY_PATH=$libraries ./example && ls lenet5.safetensors)

read -ra flags <<< "$(pkg-config --static --cflags --libs sdlf)"
if [[ $library == *.a && ! "${flags[*]}" =~ mpi|cuda|cublas|nccl ]]; then # those are shared libraries
    say "the same, linked with -static"
    "$compiler" "$temporary/example.c" -static -o "$temporary/example-static" "${flags[@]}"
    (cd "$temporary" && ./example-static)
else
    say "skipped: the same, linked with -static: this build is or needs a shared library ($(basename "$library") ${flags[*]})"
fi

say "the examples"
cp -r "$prefix/share/doc/libsdlf-dev/examples" "$temporary/examples"
CFLAGS="-Wall -Wextra -Wpedantic -Werror" cmake -S "$temporary/examples" -B "$temporary/examples/build" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$compiler" > /dev/null
cmake --build "$temporary/examples/build"
bash "$here/../apps/examples.sh" "$temporary/examples/build" "$prefix/bin/sdlf"

for cxx in c++ clang++; do
    command -v "$cxx" > /dev/null || continue
    say "the headers in C++, by $cxx"
    read -ra flags <<< "$(pkg-config --cflags sdlf)"
    for standard in c++11 c++17 c++20; do # from C++20 on GCC names every member that designated initialisers leave out
        "$cxx" "-std=$standard" -Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Werror -fsyntax-only "${flags[@]}" \
            "$consumer/consumer.cpp"
    done
done
if command -v c++ > /dev/null; then
    read -ra flags <<< "$(pkg-config --cflags --libs sdlf)"
    c++ -std=c++17 "$consumer/consumer.cpp" -o "$temporary/consumer-c++" "${flags[@]}"
    LD_LIBRARY_PATH=$libraries "$temporary/consumer-c++"
fi

say "the installed programs, in a folder with a library that nobody asked for"
cat > "$temporary/planted.c" << 'END'
#include <stdlib.h>
static void __attribute__((constructor)) planted(void) { _Exit(99); }
END
mkdir "$temporary/planted"
for name in $(readelf -d "$prefix/bin/sdlf" "$build/sdlf" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|ld-linux.*)\.so' | sort -u); do
    "$compiler" -shared -fPIC "$temporary/planted.c" -o "$temporary/planted/$name" "-Wl,-soname,$name"
done
(cd "$temporary/planted" && "$prefix/bin/sdlf" --version && "$build/sdlf" --version)

say "what is installed can be removed"
cmake --install "$build" --prefix "$temporary/removed" > /dev/null
touch "$temporary/removed/include/kept.h"
cmake -DMANIFEST="$build/install_manifest.txt" -P "$here/../../cmake/uninstall.cmake" > /dev/null 2>&1
left=$(cd "$temporary/removed" && find . ! -type d -o -name sdlf)
[ "$left" = ./include/kept.h ] || { printf 'left of an installation:\n%s\n' "$left" && exit 1; }

say "a script that a message names is installed"
message=$("$prefix/bin/sdlf" train --data mnist:/no/such/folder 2>&1 || true)
printf '%s\n' "$message"
command=$(grep -oE 'sdlf-[a-z-]+' <<< "$message")
"$prefix/bin/$command" --help | grep -F "$command"
for script in $(grep -aoE 'scripts/[a-z-]+\.(sh|py)' "$prefix/bin/sdlf" | sort -u); do
    script=$(basename "$script")
    [ -x "$prefix/bin/sdlf-${script%.*}" ] || { echo "the program names $script, which is not installed" && exit 1; }
done
