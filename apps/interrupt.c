/* Ctrl-C while training. */
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
    sdlf_trainer_stop(running);
    /* SA_RESETHAND: the next one ends the program */
}

void interrupt_stops(sdlf_trainer *trainer)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    if (trainer) {
        running = trainer;
        action.sa_handler = stop;
        action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
    }
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction before;
        sigaction(signals[i], NULL, &before);
        if (before.sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL); /* nohup stays nohup */
    }
}

int interrupt_signal(void)
{
    return received;
}
