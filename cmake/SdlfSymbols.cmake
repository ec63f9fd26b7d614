# SPDX-License-Identifier: MIT
# The names that leave the library are those that its public headers declare, so that a program may have a function of any
# other name. A shared library has a version script for that. A static one is linked into one object, in which all other
# names are then made local: this takes objcopy, and where there are COMDAT groups (of .cu files) a linker that resolves them.
# Where one is missing the archive stays as it is, and configuring says so.
#
# Tests reach everything. They link sdlf_internals: the archive as it was before, SDLF_INTERNALS, and what the library needs.

# Declarations begin at the beginning of a line, which nothing in a comment, a macro or a struct does.
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

# A static library is linked whole into one object (below), except for the sections that nothing uses, if it is linked with --gc-sections: so
# each function has one of its own, which --unique keeps apart from those of other functions of its name. A shared library's files are
# compiled alike, so that a compiler's cache has them for both.
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
    check_linker_flag(C "LINKER:--unique,--force-group-allocation" SDLF_HAVE_GROUP_ALLOCATION) # GNU ld, LLVM's from 19 on
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
    separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}}") # of link-time optimisation
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
