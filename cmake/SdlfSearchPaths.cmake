# SPDX-License-Identifier: MIT
# Where an installed program and a shared library look for the libraries that they need (RUNPATH): in the folders outside this
# build where these were found, and, for a program with the shared library, in ../lib, so that an installation can be moved.
#
# CMake would write other paths for the build folder, edit them when installing, and reserve space for longer ones with
# empty entries. These mean the working directory: a library there would be loaded. So the paths are those of the
# installation from the start. To make ../lib valid in the build folder, a shared build has the installation's layout there,
# in stage/, and build/PRESET/sdlf is a link into it.

set(programs "")
if(SDLF_BUILD_PROGRAM)
    set(programs sdlf_program)
endif()
set_target_properties(sdlf ${programs} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
if(BUILD_SHARED_LIBS)
    set(stage "${PROJECT_BINARY_DIR}/stage")
    file(RELATIVE_PATH library_folder "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
    set_target_properties(sdlf PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${stage}${CMAKE_INSTALL_FULL_LIBDIR}")
    if(SDLF_BUILD_PROGRAM)
        set_target_properties(sdlf_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${stage}${CMAKE_INSTALL_FULL_BINDIR}"
            INSTALL_RPATH "$ORIGIN/${library_folder}")
        file(CREATE_LINK "${stage}${CMAKE_INSTALL_FULL_BINDIR}/sdlf" "${PROJECT_BINARY_DIR}/sdlf" SYMBOLIC)
    endif()
endif()
