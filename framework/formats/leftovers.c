/* What killed processes have left of files that they were writing. See atomic_file.h. */
#include "framework/formats/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* "TARGET.tmp-PID-N": the process, or 0 where the name is not of that form. */
static long writer_of(const char *name, const char *target, size_t length)
{
    static const char infix[] = ".tmp-";
    if (strncmp(name, target, length) != 0 || strncmp(name + length, infix, strlen(infix)) != 0) return 0;
    const char *digits = name + length + strlen(infix);
    size_t process = strspn(digits, "0123456789"), number = 0;
    if (process > 0 && process < 10 && digits[process] == '-') number = strspn(digits + process + 1, "0123456789");
    return number > 0 && digits[process + 1 + number] == '\0' ? strtol(digits, NULL, 10) : 0;
}

/* Nobody has that number here, and nobody, here or in another container, has it open for writing. */
static bool is_left(int folder, const char *name, long process)
{
    if (kill((pid_t)process, 0) == 0 || errno != ESRCH) return false;
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return false;
    bool left = flock(file, LOCK_EX | LOCK_NB) == 0;
    close(file);
    return left;
}

void leftovers_clear(int folder, const char *target)
{
    const char *slash = strrchr(target, '/'), *base = slash != NULL ? slash + 1 : target;
    int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = own >= 0 ? fdopendir(own) : NULL;
    if (list == NULL) {
        if (own >= 0) close(own);
        return;
    }
    size_t length = strlen(base);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        long process = writer_of(entry->d_name, base, length);
        if (process > 0 && is_left(folder, entry->d_name, process)) unlinkat(folder, entry->d_name, 0);
    }
    closedir(list);
}
