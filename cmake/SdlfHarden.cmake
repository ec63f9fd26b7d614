# SPDX-License-Identifier: MIT
# Hardening against the exploitation of memory errors, for the programs and shared libraries of this build but not for their users:
# position-independent executables, relocations that are read-only at run time, stack canaries, and C library calls with checked
# buffer sizes (FORTIFY; for optimised files, without sanitizers, and unless the compiler or CMAKE_C_FLAGS choose a level
# themselves). FULL costs speed: control-flow protection, stack clash protection, zero-initialised variables, and a trap on undefined
# behaviour.

set(SDLF_HARDEN ON CACHE STRING "ON: stack protector, FORTIFY, position-independent programs, full RELRO; FULL: more, with a cost; OFF")
set_property(CACHE SDLF_HARDEN PROPERTY STRINGS ON FULL OFF)
if(NOT SDLF_HARDEN)
    sdlf_summary("hardening" "off (SDLF_HARDEN)")
    return()
endif()

set(SDLF_FORTIFY "") # the level that SDLF chooses
if(NOT SDLF_SANITIZE)
    include(CheckCSourceCompiles)
    include(CMakePushCheckState)
    cmake_push_check_state(RESET)
    set(CMAKE_REQUIRED_QUIET ON)
    set(CMAKE_TRY_COMPILE_CONFIGURATION "${CMAKE_BUILD_TYPE}") # with the flags of this build
    foreach(level 3 2)
        unset(SDLF_HAVE_FORTIFY CACHE) # flags may have changed
        check_c_source_compiles("
            #ifdef _FORTIFY_SOURCE
            #error has been chosen
            #endif
            #define _FORTIFY_SOURCE ${level}
            #include <stdlib.h>
            #if __USE_FORTIFY_LEVEL != ${level}
            #error not supported
            #endif
            int main(void) { return 0; }" SDLF_HAVE_FORTIFY)
        if(SDLF_HAVE_FORTIFY)
            set(SDLF_FORTIFY ${level})
            add_compile_options($<$<COMPILE_LANGUAGE:C>:-D_FORTIFY_SOURCE=${level}>)
            break()
        endif()
    endforeach()
    unset(CMAKE_TRY_COMPILE_CONFIGURATION)
    cmake_pop_check_state()
endif()

add_compile_options($<$<COMPILE_LANGUAGE:C>:-fstack-protector-strong> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fstack-protector-strong>)
add_link_options(LINKER:-z,relro LINKER:-z,now $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)

set(found "stack protector, PIE, RELRO, BIND_NOW")
if(SDLF_HARDEN STREQUAL "FULL")
    include(CheckCCompilerFlag)
    if(SDLF_SANITIZE)
        message(FATAL_ERROR "SDLF_HARDEN=FULL and SDLF_SANITIZE exclude each other: both instrument undefined behaviour.")
    endif()
    set(CMAKE_REQUIRED_QUIET ON)
    foreach(flag -fcf-protection=full -fstack-clash-protection -ftrivial-auto-var-init=zero)
        string(MAKE_C_IDENTIFIER "SDLF_HAVE${flag}" have)
        check_c_compiler_flag("${flag} -Werror" ${have})
        if(${have})
            add_compile_options($<$<COMPILE_LANGUAGE:C>:${flag}>)
            string(APPEND found ", ${flag}")
        endif()
    endforeach()
    unset(CMAKE_REQUIRED_QUIET)
    # as a trap, undefined behaviour needs no library
    set(trap -fsanitize-undefined-trap-on-error -Wno-stringop-overflow -Wno-stringop-overread) # false positives of GCC with traps
    if(CMAKE_C_COMPILER_ID MATCHES "Clang")
        set(trap -fsanitize=local-bounds -fsanitize-trap=all)
    endif()
    add_compile_options("$<$<COMPILE_LANGUAGE:C>:-fsanitize=undefined;${trap}>")
    string(APPEND found ", traps on undefined behaviour")
endif()
if(SDLF_FORTIFY)
    string(APPEND found ", FORTIFY ${SDLF_FORTIFY}")
endif()
sdlf_summary("hardening" "${found}")
