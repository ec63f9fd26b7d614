/* SPDX-License-Identifier: MIT */
/* A file's content written over another file's, in place.
 *
 * For targets that no other file may take the place of: a mount point, such as a single file that a container is given,
 * cannot be renamed over. The room that the new content needs is reserved first, so that a full disk leaves the old
 * content as it was; from then on the target is neither the old nor the new file until the call has ended. Whoever
 * calls keeps `source` until then. */
#ifndef SDLF_FORMATS_OVERWRITE_FILE_H
#define SDLF_FORMATS_OVERWRITE_FILE_H

#include <stdbool.h>

#include <sdlf/status.h>

/* Both paths are borrowed. *touched: the target is not what it was. Failures are SDLF_ERROR_IO with the target's path
 * and the system's reason. */
sdlf_status overwrite_file(const char *target, const char *source, bool *touched);

#endif
