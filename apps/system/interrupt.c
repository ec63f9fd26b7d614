/* SPDX-License-Identifier: MIT */
/* Ctrl-C during long work. */
#include "apps/system/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

/* Globals, since a signal handler has no other access to what it stops. All are set before the handlers are. */
static sdlf_trainer *volatile running;
static volatile sig_atomic_t received, asked;

/* Standard error is a terminal. Determined in advance: isatty is not async-signal-safe. */
static volatile sig_atomic_t watched;

/* Called when the work is still running one second after the signal: tells the user that the keys were
 * received. */
static void acknowledge_signal(int number)
{
    static const char text[] = "stopping after the current step; a second signal ends at once\n";
    int before = errno;
    (void)number;
    if (watched && write(STDERR_FILENO, "\n", 1) < 0) return;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) return;
    errno = before;
}

static void stop(int number)
{
    if (received == 0) received = number;
    if (running) sdlf_trainer_stop(running);
    if (number != SIGPIPE) alarm(1);
    /* SA_RESETHAND: the next one ends the program. Not for SIGPIPE: output may continue until the work has stopped. */
}

void interrupt_ask(void)
{
    asked = received == 0;
    if (received == 0) received = SIGINT;
}

/* SIG_DFL: the signals end the program; but once one came, a closed pipe must not end it before the work is concluded:
 * a pipe's reader often gets the same Ctrl-C. */
static void handle(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    watched = isatty(STDERR_FILENO);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction before;
        if (handler == SIG_DFL && signals[i] == SIGPIPE && received != 0) continue;
        if (handler != SIG_DFL) action.sa_flags = (int)(SA_RESTART | (signals[i] == SIGPIPE ? 0 : SA_RESETHAND));
        sigaction(signals[i], NULL, &before);
        if (before.sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL); /* nohup stays nohup */
    }
    if (handler == SIG_DFL) alarm(0);
    action = (struct sigaction){.sa_handler = acknowledge_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
}

void interrupt_stops(sdlf_trainer *trainer)
{
    running = trainer; /* NULL: it may be freed soon, and a SIGPIPE may still come */
    handle(trainer ? stop : SIG_DFL);
}

void interrupt_waits(void)
{
    running = NULL;
    handle(stop);
}

int interrupt_signal(void)
{
    return received;
}

bool interrupt_goes_on(void *user)
{
    (void)user;
    return received == 0;
}

const char *interrupt_name(void)
{
    if (asked) return "the page";
    return received == SIGINT ? "Ctrl-C" : strsignal(received);
}

void interrupt_say(bool text, const char *format, ...)
{
    if (received == 0) return;
    FILE *file = text ? stdout : stderr;
    va_list arguments;
    va_start(arguments, format);
    fprintf(file, "stopped by %s", interrupt_name());
    vfprintf(file, format, arguments);
    fputc('\n', file);
    va_end(arguments);
}
