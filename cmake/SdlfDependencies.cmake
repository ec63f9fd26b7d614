# SPDX-License-Identifier: MIT
# Packages, as imported targets. Threads, zlib and jansson are required; each of the others enables a feature if found.
#
# A program that links the static library needs the same packages. Each module that finds one exports it:
#   sdlf_exports([CMAKE line] [MODULE pkg-config module] [LIBRARY flag or path ...])
# CMAKE becomes a line of the installed sdlf-config.cmake; MODULE and LIBRARY go into sdlf.pc.
function(sdlf_exports)
    cmake_parse_arguments(arg "" "CMAKE;MODULE" "LIBRARY" ${ARGN})
    if(arg_CMAKE)
        set_property(GLOBAL APPEND_STRING PROPERTY SDLF_EXPORT_CMAKE "${arg_CMAKE}\n")
    endif()
    if(arg_MODULE)
        set_property(GLOBAL APPEND PROPERTY SDLF_EXPORT_MODULES "${arg_MODULE}")
    endif()
    foreach(library IN LISTS arg_LIBRARY)
        set_property(GLOBAL APPEND PROPERTY SDLF_EXPORT_LIBRARIES "${library}")
    endforeach()
endfunction()

# Fails if a required package is missing, naming the Debian package that has it.
function(sdlf_require found what package)
    if(NOT found)
        message(FATAL_ERROR "SDLF needs ${what}, which was not found. On Debian and Ubuntu: apt-get install ${package}, "
                            "or scripts/setup.sh for everything at once.")
    endif()
endfunction()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
sdlf_exports(CMAKE "find_dependency(Threads)" LIBRARY -lm ${CMAKE_THREAD_LIBS_INIT})

find_package(PkgConfig QUIET)
sdlf_require("${PKG_CONFIG_FOUND}" "pkg-config" "pkg-config")

find_package(ZLIB QUIET)
sdlf_require("${ZLIB_FOUND}" "zlib" "zlib1g-dev")
sdlf_exports(CMAKE "find_dependency(ZLIB)" MODULE zlib)
sdlf_summary("zlib" "${ZLIB_VERSION_STRING}")

pkg_check_modules(JANSSON QUIET IMPORTED_TARGET jansson)
sdlf_require("${JANSSON_FOUND}" "jansson, a JSON library" "libjansson-dev")
sdlf_exports(MODULE jansson CMAKE
    "find_dependency(PkgConfig)\npkg_check_modules(JANSSON QUIET IMPORTED_TARGET jansson)\nsdlf_need(JANSSON_FOUND jansson)")
sdlf_summary("jansson" "${JANSSON_VERSION}")
