/* Ctrl-C during long work. */
#include "apps/system/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

/* A signal handler has no other way to reach what it stops. Both are set before the handlers are. */
static sdlf_trainer *volatile running;
static volatile sig_atomic_t received;

static void stop(int number)
{
    if (received == 0) received = number;
    if (running) sdlf_trainer_stop(running);
    /* SA_RESETHAND: the next one ends the program. But for SIGPIPE: until the work has stopped, more is written. */
}

/* SIG_DFL: the signals end the program; but once one came, output that nobody reads is no reason to end before all is said
 * and done: a pipe's reader often gets the same Ctrl-C. */
static void handle(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction before;
        if (handler == SIG_DFL && signals[i] == SIGPIPE && received != 0) continue;
        if (handler != SIG_DFL) action.sa_flags = (int)(SA_RESTART | (signals[i] == SIGPIPE ? 0 : SA_RESETHAND));
        sigaction(signals[i], NULL, &before);
        if (before.sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL); /* nohup stays nohup */
    }
}

void interrupt_stops(sdlf_trainer *trainer)
{
    running = trainer; /* NULL: it may be gone soon, and a signal for a closed pipe may still come */
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

const char *interrupt_name(void)
{
    return received == SIGINT ? "Ctrl-C" : strsignal(received);
}
