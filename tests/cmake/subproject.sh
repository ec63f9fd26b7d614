#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SDLF as a part of another CMake project: it leaves that project's settings alone, and brings the library, nothing else.
#
#   subproject.sh FOLDER C_COMPILER      the project's folder
set -euo pipefail
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

cat > "$temporary/CMakeLists.txt" << END
cmake_minimum_required(VERSION 3.22)
project(parent VERSION 9.9 LANGUAGES C)
add_subdirectory("$1" sdlf)
add_executable(parent parent.c)
target_link_libraries(parent PRIVATE sdlf::sdlf)
foreach(name CMAKE_BUILD_TYPE CMAKE_C_STANDARD CMAKE_POSITION_INDEPENDENT_CODE CMAKE_CUDA_COMPILER)
    if(\${name})
        message(FATAL_ERROR "\${name} of the parent became '\${\${name}}'")
    endif()
endforeach()
foreach(name BUILD_SHARED_LIBS CMAKE_BUILD_TYPE)
    get_property(value CACHE \${name} PROPERTY VALUE)
    if(value)
        message(FATAL_ERROR "the parent's cache got \${name}=\${value}")
    endif()
endforeach()
get_directory_property(options COMPILE_OPTIONS)
if(options)
    message(FATAL_ERROR "the parent is compiled with \${options}")
endif()
foreach(target sdlf_program sdlf_apps train_mnist sdlf_tests uninstall)
    if(TARGET \${target})
        message(FATAL_ERROR "there is a target \${target} that nobody asked for")
    endif()
endforeach()
END
cat > "$temporary/parent.c" << 'END'
#include <string.h>

#include <sdlf/sdlf.h>

int main(void)
{
    return strcmp(sdlf_version(), SDLF_VERSION);
}
END
cmake -S "$temporary" -B "$temporary/build" -DCMAKE_C_COMPILER="$2" > "$temporary/log" 2>&1 || { cat "$temporary/log" && exit 1; }
grep -E 'CUDA +off' "$temporary/log"
"$2" -std=c11 -Wall -Werror -I "$1/framework/include" -fsyntax-only "$temporary/parent.c"

# Installing the parent installs nothing of SDLF.
cmake --install "$temporary/build" --prefix "$temporary/prefix" > "$temporary/installed" 2>&1 || { cat "$temporary/installed" && exit 1; }
[ ! -e "$temporary/prefix" ] || { find "$temporary/prefix" && exit 1; }
echo "The library is a part of another project, and nothing else is."
