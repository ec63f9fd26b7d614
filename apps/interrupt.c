/* Ctrl-C during long work. */
#include "apps/interrupt.h"

#include <signal.h>
#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* A signal handler has no other way to reach what it stops. Both are set before the handlers are. */
static sdlf_trainer *volatile running;
static volatile sig_atomic_t received;

static void stop(int number)
{
    received = number;
    if (running) sdlf_trainer_stop(running);
    /* SA_RESETHAND: the next one ends the program */
}

/* SIG_DFL: the signals end the program. */
static void handle(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    if (handler != SIG_DFL) action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction before;
        sigaction(signals[i], NULL, &before);
        if (before.sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL); /* nohup stays nohup */
    }
}

void interrupt_stops(sdlf_trainer *trainer)
{
    if (trainer) running = trainer;
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
