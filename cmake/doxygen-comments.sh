#!/bin/sh
# SPDX-License-Identifier: MIT
# doxygen-comments.sh HEADER: the header with its comments marked for Doxygen: the first is the file's, one behind a member is that member's,
# any other that of what follows; headings between dashes stay as they are.
sed -e '1s,^/\* ,/** @file\n * ,; t' -e 's,^\( *\)/\* \([^-]\),\1/** \2,; t' -e 's:\([;,{] *\)/\* :\1/**< :' "$1"
