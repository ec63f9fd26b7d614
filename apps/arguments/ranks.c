/* SPDX-License-Identifier: MIT */
/* Several ranks. See ranks.h. */
#include "apps/arguments/ranks.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/machine.h>

#include "apps/output/report.h"
#include "apps/output/terminal.h"

const argument device_list_arguments[] = {
    {"devices", ARGUMENT_TEXT, offsetof(rank_settings, devices), "LIST",
     .help =
         "split the batch over several GPUs, 0,1; with the cpu calculator 0,0 means two threads that share its cores"},
    {0},
};

const argument rank_arguments[] = {
    {.name = "Several ranks", .type = ARGUMENT_HEADING},
    {"devices", ARGUMENT_TEXT, offsetof(rank_settings, devices), "LIST",
     .help = "split each batch over several GPUs, 0,1, with one thread each; with the cpu calculator 0,0 means two "
             "threads that share its cores"},
    {"communicator", ARGUMENT_TEXT, offsetof(rank_settings, communicator), "NAME",
     .help = "split each batch over the processes that mpirun has started: mpi, or nccl if each has its own GPU"},
    {"communicator-timeout", ARGUMENT_FLOAT, offsetof(rank_settings, timeout), "SECONDS", .minimum = 0.1,
     .maximum = 86400, .fallback = "20", .help = "give up on a process that has not answered for this long"},
    {0},
};

static sdlf_status check_device(const rank_settings *s, long device, int count, const char *calculator)
{
    if (device >= count && count == 1)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "expected device 0, the only one the %s calculator has here, found %ld",
                         calculator, device);
    if (device >= count)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "expected devices 0 to %d, which the %s calculator has here, found %ld",
                         count - 1, calculator, device);
    for (int i = 0; i < s->device_count && machine_has_devices(calculator); i++)
        if (s->device[i] == device)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "expected each device once, found %ld again", device);
    return SDLF_OK;
}

static sdlf_status read_devices(rank_settings *s, const char *calculator)
{
    int count;
    sdlf_status status = machine_count_devices(calculator, &count);
    s->device_count = 0;
    for (const char *at = s->devices; status == SDLF_OK;) {
        char *end;
        bool digit = *at >= '0' && *at <= '9';
        long device = strtol(at, &end, 10);
        if (!digit || (*end != ',' && *end != '\0'))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "expected numbers separated by commas, like 0,1, found '%s'", at);
        if (s->device_count == RANKS_MOST_DEVICES)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "expected at most %d devices", RANKS_MOST_DEVICES);
        status = check_device(s, device, count, calculator);
        s->device[s->device_count++] = device;
        if (*end == '\0') break;
        at = end + 1;
    }
    return status;
}

sdlf_status ranks_read_devices(rank_settings *s, const char *calculator)
{
    return sdlf_fail_context(read_devices(s, calculator), "--devices %s", s->devices);
}

/* The number of processes that mpirun started, from the environment of Open MPI and of MPICH derivatives. */
static int processes_here(void)
{
    static const char *const counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const char *count = getenv(counts[i]);
        if (count != NULL && atoi(count) > 1) return atoi(count);
    }
    return 1;
}

/* The communicator for threads: NCCL on GPUs. */
static const char *communicator_of(const char *calculator)
{
    return machine_has_devices(calculator) ? "nccl" : "threads";
}

/* Checks that it is in this build. Opening one that is not gives the reason. */
static sdlf_status check_communicator(const char *name)
{
    sdlf_communicator *opened = NULL;
    for (int i = 0; sdlf_communicator_class_at(i) != NULL; i++)
        if (strcmp(sdlf_communicator_class_at(i)->name, name) == 0) return SDLF_OK;
    return sdlf_communicator_open(&opened, name, NULL);
}

/* A communicator whose ranks do not all answer ends the process from its own thread; only this reports the reason. */
static void report_end(sdlf_status status, const char *message, void *user)
{
    static const char begins[] = "all ranks end: ";
    (void)status, (void)user;
    if (strncmp(message, begins, sizeof begins - 1) == 0) fprintf(stderr, "%s\n", message);
}

sdlf_status ranks_check(rank_settings *s, const arguments *given, const char *calculator, machine_choice *chosen)
{
    if (s->communicator != NULL && strcmp(s->communicator, "threads") == 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--communicator threads is chosen by --devices on the host, not by name");
    if (s->devices == NULL && s->communicator == NULL && arguments_given(given, "communicator-timeout"))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--communicator-timeout needs --communicator NAME");
    if (s->devices != NULL || s->communicator != NULL) sdlf_set_message_function(report_end, NULL);
    if (s->devices == NULL) return SDLF_OK;
    static const char *const others[] = {"device", "communicator", "communicator-timeout"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (arguments_given(given, others[i]))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--devices %s and --%s contradict each other%s", s->devices,
                             others[i],
                             i > 0 ? ": ranks are the threads of this process, or those that mpirun has started" : "");
    int processes = processes_here();
    if (processes > 1)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "--devices %s is for one process, but mpirun has started %d: run without mpirun, or give "
                         "--communicator nccl instead",
                         s->devices, processes);
    sdlf_status status = ranks_read_devices(s, calculator);
    if (status == SDLF_OK && s->device_count > 1)
        status = sdlf_fail_context(check_communicator(communicator_of(calculator)), "--devices %s", s->devices);
    if (status == SDLF_OK && s->device_count == 1) chosen->device = s->device[0];
    return status;
}

/* ---- threads ---- */

typedef struct rank_thread {
    pthread_t thread;
    int (*work)(void *session);
    void *session;
} rank_thread;

static void *start(void *user)
{
    rank_thread *t = user;
    t->work(t->session);
    return NULL;
}

/* Ends the process if a rank cannot start while others already wait for it: no work has begun that must be kept. */
static void give_up(const char *what)
{
    terminal_error(NULL, "cannot start a rank for each device: %s", what);
    _Exit(EXIT_FAILURE);
}

/* Starts the other threads with signals blocked: the first thread handles them. */
static void start_others(rank_thread *thread, int count)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 1; i < count; i++) {
        int error = pthread_create(&thread[i].thread, NULL, start, &thread[i]);
        if (error != 0) give_up(strerror(error));
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int ranks_run(void *session, size_t size, size_t offset, int (*work)(void *session))
{
    rank_settings *first = (void *)((char *)session + offset);
    int count = first->device_count;
    if (count < 2) return work(session);
    rank_thread thread[RANKS_MOST_DEVICES];
    char *copies = malloc((size_t)count * size);
    if (copies == NULL || sdlf_rank_group_create(&first->group, count) != SDLF_OK) give_up("no memory");
    for (int i = 1; i < count; i++) {
        thread[i] = (rank_thread){.work = work, .session = copies + (size_t)i * size};
        memcpy(thread[i].session, session, size);
        ((rank_settings *)(void *)((char *)thread[i].session + offset))->rank = i;
    }
    start_others(thread, count);
    int code = work(session);
    for (int i = 1; i < count; i++) pthread_join(thread[i].thread, NULL);
    free(copies);
    sdlf_rank_group_free(first->group);
    first->group = NULL;
    return code;
}

bool ranks_is_second(const rank_settings *s)
{
    return s->rank > 0;
}

sdlf_status ranks_open(const rank_settings *s, sdlf_communicator **ranks, const char *calculator)
{
    *ranks = NULL;
    const char *name = s->group != NULL ? communicator_of(calculator) : s->communicator;
    if (name == NULL) return SDLF_OK;
    sdlf_status status = sdlf_communicator_open(
        ranks, name, &(sdlf_communicator_options){.timeout = s->timeout, .group = s->group, .rank = s->rank});
    if (status != SDLF_OK && s->group != NULL) give_up(sdlf_error_message());
    return status;
}

int64_t ranks_processors_part(const rank_settings *s)
{
    int64_t all = sdlf_machine_processors();
    return all > s->device_count ? all / s->device_count : 1;
}

int64_t ranks_workers(const rank_settings *s, int64_t asked)
{
    return asked == 0 && s->group != NULL ? ranks_processors_part(s) : asked;
}

void ranks_take_place(const rank_settings *s, const sdlf_communicator *ranks, const arguments *given,
                      const char *calculator, machine_choice *choice)
{
    if (ranks == NULL) return;
    if (s->group == NULL && !arguments_given(given, "device"))
        choice->device = machine_device_of(calculator, ranks->local_rank);
    if (s->group == NULL) return;
    choice->device = s->device[s->rank];
    if (!arguments_given(given, "threads")) choice->threads = ranks_processors_part(s);
}

void ranks_print(const rank_settings *s, const sdlf_communicator *ranks, const terminal *out)
{
    report_label(out, "ranks");
    printf("%d of %s; ", ranks->opened_count, ranks->type->name);
    if (s->group != NULL)
        printf("devices %s of %s\n", s->devices, ranks->host);
    else
        printf("this is rank 0 on %s\n", ranks->host);
}
