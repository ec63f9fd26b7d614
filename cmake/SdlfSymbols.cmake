# SPDX-License-Identifier: MIT
# The library exports only the names that its public headers declare, so that a program may use any other name. A shared
# library has a version script for that. A static one is linked into one object, in which all other names are then made local:
# this requires objcopy, and for COMDAT groups (from .cu files) a linker that resolves them. If one is missing the archive is
# left unchanged, and configuring reports it.
#
# Tests can call everything. They link sdlf_internals: the original archive, SDLF_INTERNALS, and the library's dependencies.

# Declarations start in the first column, unlike anything in a comment, a macro or a struct.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/framework/include/sdlf/*.h")
set(names "")
foreach(header IN LISTS headers)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
    file(STRINGS "${header}" lines REGEX "^[a-z].*sdlf_[a-z0-9_]+(\\(|\\[\\];)")
    list(FILTER lines EXCLUDE REGEX "^(typedef|static|inline|template) ")
    string(REGEX MATCHALL "sdlf_[a-z0-9_]+(\\(|\\[)" found "${lines}")
    list(APPEND names ${found})
endforeach()
list(TRANSFORM names REPLACE "[(]|\\[" "")
list(REMOVE_DUPLICATES names)
list(LENGTH names count)

# A static library is linked into one object (below); --gc-sections can then still drop unused sections of it: so each function has its own
# section, which --unique keeps separate from those of other functions of the same name. A shared library's files are compiled with the same
# flags, so that a compiler cache serves both.
target_compile_options(sdlf_build_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-ffunction-sections -fdata-sections>)
set_target_properties(sdlf PROPERTIES DEFINE_SYMBOL "")

set(SDLF_INTERNALS $<TARGET_FILE:sdlf>)
if(BUILD_SHARED_LIBS)
    list(JOIN names "; " text)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/sdlf.map" CONTENT "{ global: ${text}; local: *; };\n" @ONLY)
    target_link_options(sdlf PRIVATE "LINKER:--version-script=${PROJECT_BINARY_DIR}/sdlf.map")
    set_target_properties(sdlf PROPERTIES LINK_DEPENDS "${PROJECT_BINARY_DIR}/sdlf.map")
    sdlf_summary("symbols" "${count} public")
    return()
endif()

set(missing "")
if(NOT CMAKE_OBJCOPY)
    set(missing "objcopy was not found (binutils)")
else()
    include(CheckLinkerFlag)
    check_linker_flag(C "LINKER:--unique,--force-group-allocation" SDLF_HAVE_GROUP_ALLOCATION) # GNU ld, LLD from 19 on
    if(SDLF_CUDA_ENABLED AND NOT SDLF_HAVE_GROUP_ALLOCATION)
        set(missing "this linker has no --force-group-allocation, which .cu files need")
    endif()
endif()
if(missing)
    sdlf_summary("symbols" "${count} public; others are visible, too: ${missing}")
else()
    list(JOIN names "\n" text)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/sdlf.symbols" CONTENT "${text}\n" @ONLY)
    string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
    separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}}") # for link-time optimisation
    list(APPEND flags $<$<C_COMPILER_ID:GNU>:-flinker-output=nolto-rel> $<$<BOOL:${SDLF_HAVE_GROUP_ALLOCATION}>:-Wl,--unique,--force-group-allocation>)
    set(SDLF_INTERNALS "${PROJECT_BINARY_DIR}/libsdlf_internals.a")
    set(object "${PROJECT_BINARY_DIR}/sdlf.o")
    add_custom_command(TARGET sdlf POST_BUILD
        COMMAND "${CMAKE_C_COMPILER}" ${flags} -r -nostdlib -Wl,--whole-archive $<TARGET_FILE:sdlf> -o "${object}"
        COMMAND "${CMAKE_OBJCOPY}" "--keep-global-symbols=${PROJECT_BINARY_DIR}/sdlf.symbols" "${object}"
        COMMAND "${CMAKE_COMMAND}" -E rename $<TARGET_FILE:sdlf> "${SDLF_INTERNALS}"
        COMMAND "${CMAKE_AR}" rcs $<TARGET_FILE:sdlf> "${object}"
        COMMAND "${CMAKE_COMMAND}" -E rm "${object}"
        BYPRODUCTS "${SDLF_INTERNALS}" COMMAND_EXPAND_LISTS VERBATIM)
    sdlf_summary("symbols" "${count} public")
endif()

add_library(sdlf_internals INTERFACE)
add_dependencies(sdlf_internals sdlf)
target_link_libraries(sdlf_internals INTERFACE "${SDLF_INTERNALS}" sdlf)
