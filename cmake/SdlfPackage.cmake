# SPDX-License-Identifier: MIT
# Packages: cpack -G DEB and -G TGZ, of the install() components library, dev, program and python. They are reproducible: the same tree gives the
# same bytes, with dates from SOURCE_DATE_EPOCH or the last commit.

set(CPACK_PACKAGE_NAME sdlf)
set(CPACK_PACKAGE_VENDOR "SDLF")
set(SDLF_PACKAGE_CONTACT "The SDLF authors <sdlf@noreply.invalid>" CACHE STRING "Whom packages name as their maintainer")
set(CPACK_PACKAGE_CONTACT "${SDLF_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Simple Deep Learning Framework")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_FILE_NAME "sdlf-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF) # one archive for all
set(CPACK_COMPONENTS_ALL program dev)

# Debian packages: the program, the development files, and the shared library if there is one
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${CPACK_PACKAGE_CONTACT}")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME sdlf)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "train, time and run neural networks
 The sdlf program trains networks on pictures, runs and times ONNX models, and
 reports what it sees, on CPUs and, where it was built for them, on GPUs.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libsdlf-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DESCRIPTION "deep learning in C: headers and library
 What programs that use the Simple Deep Learning Framework are built with:
 headers, the library to link, a CMake package and a pkg-config file.")
if(BUILD_SHARED_LIBS)
    list(APPEND CPACK_COMPONENTS_ALL library)
    set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libsdlf${SDLF_SOVERSION})
    set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
    set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
    # Not CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS, which calls ldconfig in scripts: dpkg does that with a trigger.
    file(WRITE "${PROJECT_BINARY_DIR}/package/shlibs" "libsdlf ${SDLF_SOVERSION} libsdlf${SDLF_SOVERSION} (>= ${PROJECT_VERSION})\n")
    file(WRITE "${PROJECT_BINARY_DIR}/package/triggers" "activate-noawait ldconfig\n")
    set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/package/shlibs;${PROJECT_BINARY_DIR}/package/triggers")
    set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "deep learning in C: the shared library
 The library of the Simple Deep Learning Framework, for programs that use it.")
    get_target_property(library_folder sdlf LIBRARY_OUTPUT_DIRECTORY)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${library_folder}")
    set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "libsdlf${SDLF_SOVERSION} (= ${PROJECT_VERSION})")
    set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libsdlf${SDLF_SOVERSION} (= ${PROJECT_VERSION})")
    if(SDLF_PYTHON_PACKAGE) # for the Python that it was built with; its .py files are compiled where it is installed
        list(APPEND CPACK_COMPONENTS_ALL python)
        math(EXPR next "${SDLF_PYTHON_MINOR} + 1")
        set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-sdlf)
        set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
        set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
        set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
            "libsdlf${SDLF_SOVERSION} (= ${PROJECT_VERSION}), python3 (>= 3.${SDLF_PYTHON_MINOR}~), python3 (<< 3.${next}), python3-numpy")
        set(CPACK_COMPONENT_PYTHON_DESCRIPTION "deep learning in Python: the SDLF package
 Networks built, trained and run from Python with NumPy arrays, by the Simple
 Deep Learning Framework.")
        foreach(pair postinst:py3compile prerm:py3clean)
            string(REGEX MATCH "^(.*):(.*)$" pair "${pair}")
            file(WRITE "${PROJECT_BINARY_DIR}/package/${CMAKE_MATCH_1}"
                "#!/bin/sh\nset -e\nif command -v ${CMAKE_MATCH_2} > /dev/null; then ${CMAKE_MATCH_2} -p python3-sdlf; fi\n")
            file(CHMOD "${PROJECT_BINARY_DIR}/package/${CMAKE_MATCH_1}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
                GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
            list(APPEND CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/package/${CMAKE_MATCH_1}")
        endforeach()
    endif()
else()
    set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "zlib1g-dev, libjansson-dev") # and the others that the build has found
    get_property(modules GLOBAL PROPERTY SDLF_EXPORT_MODULES)
    foreach(pair libpng:libpng-dev libturbojpeg:libturbojpeg0-dev libprotobuf-c:libprotobuf-c-dev)
        string(REGEX MATCH "^([^:]+):(.+)$" pair "${pair}")
        if("${CMAKE_MATCH_1}" IN_LIST modules)
            string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", ${CMAKE_MATCH_2}")
        endif()
    endforeach()
    if(SDLF_MPI_ENABLED)
        string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libopenmpi-dev")
    endif()
endif()

# Files that every Debian package contains
find_program(SDLF_GZIP gzip)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH, if set
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
    execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" log -1 --format=%cd "--date=format-local:%a, %d %b %Y %H:%M:%S +0000"
        OUTPUT_VARIABLE committed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE code)
    if(code EQUAL 0 AND committed)
        set(date "${committed}")
    endif()
endif()
file(WRITE "${PROJECT_BINARY_DIR}/package/changelog"
    "sdlf (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * Version ${PROJECT_VERSION}; see CHANGELOG.md in the sources.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
set(changelog "${PROJECT_BINARY_DIR}/package/changelog")
if(SDLF_GZIP)
    execute_process(COMMAND "${SDLF_GZIP}" -9nf "${changelog}" COMMAND_ERROR_IS_FATAL ANY)
    string(APPEND changelog ".gz")
endif()
file(READ "${PROJECT_SOURCE_DIR}/LICENSE" license)
file(WRITE "${PROJECT_BINARY_DIR}/package/copyright" "The Simple Deep Learning Framework, SDLF ${PROJECT_VERSION}\n\n${license}")
foreach(pair program:sdlf dev:libsdlf-dev library:libsdlf${SDLF_SOVERSION} python:python3-sdlf)
    string(REPLACE ":" ";" pair "${pair}")
    list(GET pair 0 component)
    list(GET pair 1 package)
    if(NOT component IN_LIST CPACK_COMPONENTS_ALL)
        continue()
    endif()
    install(FILES "${PROJECT_BINARY_DIR}/package/copyright" "${changelog}" DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
        COMPONENT ${component})
endforeach()

include(CPack)
