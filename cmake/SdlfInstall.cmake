# SPDX-License-Identifier: MIT
# Installation: library, headers, programs, CMake package and pkg-config file. sdlf_exports (SdlfDependencies.cmake) has
# collected what a user of the static library must link as well; a shared library has its own dependencies.

include(CMakePackageConfigHelpers)
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/sdlf")

install(TARGETS sdlf EXPORT sdlf-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library)
install(EXPORT sdlf-targets NAMESPACE sdlf:: DESTINATION "${package_folder}" COMPONENT dev)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/framework/include/sdlf" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
    FILES_MATCHING PATTERN "*.h")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/sdlf COMPONENT license) # packages install it as documentation
install(DIRECTORY apps/examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libsdlf-dev/examples COMPONENT dev)
if(SDLF_BUILD_PROGRAM)
    install(TARGETS sdlf_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
    install(PROGRAMS scripts/get-mnist.sh DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program RENAME sdlf-get-mnist) # messages name it
endif()
if(PROJECT_IS_TOP_LEVEL) # removes the last installation from this build folder
    add_custom_target(uninstall COMMAND "${CMAKE_COMMAND}" "-DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt"
        -P "${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake" VERBATIM)
endif()

# find_package(sdlf)
set(dependencies "")
if(NOT BUILD_SHARED_LIBS)
    get_property(dependencies GLOBAL PROPERTY SDLF_EXPORT_CMAKE)
endif()
configure_package_config_file(cmake/sdlf-config.cmake.in sdlf-config.cmake INSTALL_DESTINATION "${package_folder}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(sdlf-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/sdlf-config.cmake" "${PROJECT_BINARY_DIR}/sdlf-config-version.cmake"
    DESTINATION "${package_folder}" COMPONENT dev)

# pkg-config sdlf: if there is only the static library, everything is public, so that no --static is needed
set(modules "")
set(libraries "")
if(NOT BUILD_SHARED_LIBS)
    get_property(modules GLOBAL PROPERTY SDLF_EXPORT_MODULES)
    get_property(libraries GLOBAL PROPERTY SDLF_EXPORT_LIBRARIES)
endif()
list(REMOVE_DUPLICATES libraries)
list(JOIN modules " " modules)
list(JOIN libraries " " libraries)
file(RELATIVE_PATH prefix_from_pc "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
configure_file(cmake/sdlf.pc.in sdlf.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/sdlf.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
