# Options, build type, warnings and sanitizers. Everything applies through the interface target sdlf_build_flags.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

option(SDLF_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(SDLF_WERROR "Treat compiler warnings as errors" OFF)
option(SDLF_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(SDLF_FUZZ "Build the libFuzzer targets (Clang only)" OFF)

add_library(sdlf_build_flags INTERFACE)
target_compile_definitions(sdlf_build_flags INTERFACE _GNU_SOURCE)
target_compile_options(sdlf_build_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wvla -Wshadow -Wmissing-prototypes -Wstrict-prototypes>)
if(SDLF_WERROR)
    target_compile_options(sdlf_build_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
if(SDLF_SANITIZE)
    target_compile_options(sdlf_build_flags INTERFACE
        $<$<COMPILE_LANGUAGE:C>:-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer>)
    target_link_options(sdlf_build_flags INTERFACE -fsanitize=address,undefined)
endif()
if(SDLF_FUZZ)
    target_compile_options(sdlf_build_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-fsanitize=fuzzer-no-link>)
endif()
