# Installation: library, headers, program, CMake package and pkg-config file.
