# SPDX-License-Identifier: MIT
# Files as C strings:  cmake -DOUT=FILE.c -DHEADER=HEADER -DPREFIX=PREFIX "-DFILES=a.html;b.js" -P text-to-c.cmake
#
# a.html becomes PREFIX_a_html, an array of its bytes and a 0.
set(text "/* Made by CMake. */\n#include \"${HEADER}\"\n")
foreach(path IN LISTS FILES)
    get_filename_component(name "${path}" NAME)
    string(MAKE_C_IDENTIFIER "${PREFIX}_${name}" name)
    file(READ "${path}" bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND text "\nconst char ${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE "${OUT}" "${text}")
