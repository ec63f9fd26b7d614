#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SDLF as a part of another CMake project: it leaves that project's settings alone, and brings the library, nothing else. The
# project is built, in the usual way and by FetchContent, and its program runs.
#
#   subproject.sh FOLDER C_COMPILER WORK      the project's folder; one to work in, the same each time for a compiler's cache
set -euo pipefail
temporary=$3
rm -rf "$temporary"
mkdir "$temporary"
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
    sdlf_model *net = sdlf_model_create("parent");
    sdlf_relu(net, sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(3)));
    sdlf_status status = sdlf_model_build(net, 1);
    sdlf_model_free(net);
    return status != SDLF_OK || strcmp(sdlf_version(), SDLF_VERSION) != 0;
}
END
cmake -S "$temporary" -B "$temporary/build" -DCMAKE_C_COMPILER="$2" > "$temporary/log" 2>&1 || { cat "$temporary/log" && exit 1; }
grep -E 'CUDA +off' "$temporary/log"
cmake --build "$temporary/build" --target parent --parallel 2 > "$temporary/built" 2>&1 || { tail -30 "$temporary/built" && exit 1; }
"$temporary/build/parent"
if find "$temporary/build" -name sdlf -type f -perm -u+x | grep .; then
    echo "the parent's build has made the program" && exit 1
fi

# The same by FetchContent, from the folder; configured only.
mkdir "$temporary/fetching"
cat > "$temporary/fetching/CMakeLists.txt" << END
cmake_minimum_required(VERSION 3.22)
project(fetching LANGUAGES C)
include(FetchContent)
FetchContent_Declare(sdlf SOURCE_DIR "$1")
FetchContent_MakeAvailable(sdlf)
add_executable(fetching ../parent.c)
target_link_libraries(fetching PRIVATE sdlf::sdlf)
END
cmake -S "$temporary/fetching" -B "$temporary/fetching/build" -DCMAKE_C_COMPILER="$2" > "$temporary/log" 2>&1 || { cat "$temporary/log" && exit 1; }

# Installing the parent installs nothing of SDLF.
cmake --install "$temporary/build" --prefix "$temporary/prefix" > "$temporary/installed" 2>&1 || { cat "$temporary/installed" && exit 1; }
[ ! -e "$temporary/prefix" ] || { find "$temporary/prefix" && exit 1; }
echo "The library is a part of another project, and nothing else is."
