/* SPDX-License-Identifier: MIT */
/* Limits of control groups. See cgroup.h. */
#include "framework/machine/cgroup.h"

#include <stdio.h>
#include <string.h>

#include "framework/machine/lines.h"

static const int64_t no_limit = INT64_MAX / 2;

typedef struct search {
    const char *root;
    cgroup_limits limits;
    char memory[PATH_BYTES], cpu[PATH_BYTES], unified[PATH_BYTES]; /* this process's groups; "": none */
} search;

static void lower(int64_t *limit, int64_t to)
{
    if (to < *limit) *limit = to;
}

/* True if `word` occurs in a comma-separated list. */
static bool lists(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (; *words != '\0'; words += strcspn(words, ","), words += *words == ',')
        if (strncmp(words, word, length) == 0 && (words[length] == ',' || words[length] == '\0')) return true;
    return false;
}

/* ---- one group ---- */

typedef struct group {
    const char *root;
    char path[PATH_BYTES]; /* its directory */
} group;

/* The path of a file of the group; false if it is too long. */
static bool file_of(const group *g, const char *name, char *path)
{
    int length = snprintf(path, PATH_BYTES, "%s/%s", g->path, name);
    return length > 0 && length < PATH_BYTES;
}

static bool number_of(const group *g, const char *name, int64_t *number)
{
    char path[PATH_BYTES];
    return file_of(g, name, path) && number_in_file(g->root, path, number);
}

/* Cached files, whose memory is reclaimed before the limit takes effect. */
static int64_t cached(const group *g, const char *active, const char *inactive)
{
    line_reader reader;
    char path[PATH_BYTES];
    int64_t sum = 0, bytes;
    size_t lengths[] = {strlen(active), strlen(inactive)};
    if (!file_of(g, "memory.stat", path) || !lines_open(&reader, g->root, path)) return 0;
    for (const char *line; (line = lines_next(&reader)) != NULL;)
        for (int i = 0; i < 2; i++)
            if (strncmp(line, i == 0 ? active : inactive, lengths[i]) == 0 &&
                number_at(line + lengths[i], &bytes, NULL) && bytes <= INT64_MAX - sum)
                sum += bytes;
    lines_close(&reader);
    return sum;
}

static void read_memory_limits(const group *g, bool unified, cgroup_limits *limits)
{
    int64_t limit, used;
    if (!number_of(g, unified ? "memory.max" : "memory.limit_in_bytes", &limit)) return; /* "max" */
    if (limit == 0) return;       /* impossible, since nothing would run: ignore it */
    if (limit > no_limit) return; /* how version 1 says "no limit" */
    lower(&limits->memory, limit);
    int64_t left = limit;
    if (number_of(g, unified ? "memory.current" : "memory.usage_in_bytes", &used)) {
        int64_t files = unified ? cached(g, "active_file ", "inactive_file ")
                                : cached(g, "total_active_file ", "total_inactive_file ");
        int64_t kept = used > files ? used - files : 0;
        left = limit > kept ? limit - kept : 0;
    }
    lower(&limits->available, left);
}

static void read_cpu_quota(const group *g, bool unified, cgroup_limits *limits)
{
    int64_t quota, period;
    char path[PATH_BYTES];
    if (unified) { /* "150000 100000" or "max 100000" */
        line_reader reader;
        const char *rest = NULL;
        if (!file_of(g, "cpu.max", path) || !lines_open(&reader, g->root, path)) return;
        const char *line = lines_next(&reader);
        bool both = line != NULL && number_at(line, &quota, &rest) && number_at(rest, &period, NULL);
        lines_close(&reader);
        if (!both) return;
    } else if (!number_of(g, "cpu.cfs_quota_us", &quota) || !number_of(g, "cpu.cfs_period_us", &period)) {
        return; /* -1 */
    }
    if (quota > 0 && period > 0) lower(&limits->processors, (quota - 1) / period + 1);
}

/* ---- from the group to the top of the mounted hierarchy ---- */

static void read_ancestors(search *s, const char *mount, const char *below, bool memory, bool cpu, bool unified)
{
    group g = {.root = s->root};
    int length = snprintf(g.path, sizeof g.path, "%s%s", mount, below);
    size_t top = strlen(mount);
    if (length < 0 || (size_t)length >= sizeof g.path) snprintf(g.path, sizeof g.path, "%s", mount);
    for (;;) {
        size_t used = strlen(g.path);
        while (used > top && g.path[used - 1] == '/') g.path[--used] = '\0';
        if (memory) read_memory_limits(&g, unified, &s->limits);
        if (cpu) read_cpu_quota(&g, unified, &s->limits);
        if (used <= top) return;
        *strrchr(g.path, '/') = '\0';
    }
}

/* The part of `path` below the mounted group; "" if it is not below it, as in a container that sees its own group at
 * the mount and the host's name of it in /proc. */
static const char *below(const char *path, const char *mounted)
{
    size_t length = strcmp(mounted, "/") == 0 ? 0 : strlen(mounted);
    bool inside = strncmp(path, mounted, length) == 0 && (path[length] == '/' || path[length] == '\0');
    return inside && strstr(path, "/..") == NULL ? path + length : "";
}

/* Undoes the escapes of blanks and similar characters as three octal digits, such as \040. */
static void unescape(char *text)
{
    char *to = text;
    for (; *text != '\0'; to++) {
        bool octal = text[0] == '\\' && strspn(text + 1, "01234567") >= 3;
        *to = octal ? (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0')) : *text;
        text += octal ? 4 : 1;
    }
    *to = '\0';
}

/* "ID PARENT DEVICE GROUP MOUNT OPTIONS [MORE...] - TYPE SOURCE CONTROLLERS" */
static void take_mount(search *s, char *line)
{
    char *field[5], *rest = line, *dash = strstr(line, " - ");
    if (dash == NULL) return;
    *dash = '\0';
    for (int i = 0; i < 5; i++)
        if ((field[i] = strsep(&rest, " ")) == NULL) return;
    char *mounted = field[3], *mount = field[4], *about = dash + 3;
    const char *type = strsep(&about, " ");
    bool unified = strcmp(type, "cgroup2") == 0;
    if (!unified && strcmp(type, "cgroup") != 0) return;
    strsep(&about, " ");
    bool memory = about != NULL && lists(about, "memory"), cpu = about != NULL && lists(about, "cpu");
    unescape(mounted);
    unescape(mount);
    if (unified && s->unified[0] != '\0') read_ancestors(s, mount, below(s->unified, mounted), true, true, true);
    if (unified) return;
    if (memory && s->memory[0] != '\0') read_ancestors(s, mount, below(s->memory, mounted), true, false, false);
    if (cpu && s->cpu[0] != '\0') read_ancestors(s, mount, below(s->cpu, mounted), false, true, false);
}

/* "NUMBER:CONTROLLERS:PATH"; version 2 is "0::PATH". */
static void take_group(search *s, char *line)
{
    char *rest = line, *number = strsep(&rest, ":"), *controllers = strsep(&rest, ":");
    if (controllers == NULL || rest == NULL || rest[0] != '/' || strlen(rest) >= PATH_BYTES) return;
    if (strcmp(number, "0") == 0 && controllers[0] == '\0') strcpy(s->unified, rest);
    if (lists(controllers, "memory")) strcpy(s->memory, rest);
    if (lists(controllers, "cpu")) strcpy(s->cpu, rest);
}

static void each_line(search *s, const char *path, void (*take)(search *s, char *line))
{
    line_reader reader;
    if (!lines_open(&reader, s->root, path)) return;
    for (char *line; (line = lines_next(&reader)) != NULL;) take(s, line);
    lines_close(&reader);
}

cgroup_limits cgroup_read(const char *root)
{
    search s = {.root = root, .limits = {INT64_MAX, INT64_MAX, INT64_MAX}};
    each_line(&s, "/proc/self/cgroup", take_group);
    each_line(&s, "/proc/self/mountinfo", take_mount);
    return s.limits;
}
