/* What killed processes have left of files that they were writing: part of atomic_file.h. */
#ifndef SDLF_FORMATS_LEFTOVERS_H
#define SDLF_FORMATS_LEFTOVERS_H

/* Remove temporary files of this target from its folder whose writers are gone: no process has their number, and nobody
 * holds their lock. Whatever cannot be looked at stays. */
void leftovers_clear(int folder, const char *target);

#endif
