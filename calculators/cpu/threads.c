/* SPDX-License-Identifier: MIT */
/* One parallel region after another: the caller publishes the region's number with its thread count, and the participants pick it
 * up and count themselves out. Nobody sleeps or wakes anybody without the lock, and each side announces that it will sleep before
 * its final check of the condition. */
#include "calculators/cpu/threads.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <sdlf/machine.h>

#include "calculators/cpu/cpu.h"
#include "calculators/cpu/pause.h"
#include "framework/clock.h"
#include "framework/portable.h"

/* A waiting thread spins for this long before it sleeps: longer than most plans take between two regions, so that threads stay awake
 * during a run, and short compared to a scheduler time slice. */
enum { SPIN_NANOSECONDS = 200000, SPINS_CROWDED = 100 /* more threads than cores */, COUNT_BITS = 16 };

typedef struct worker {
    cpu_threads *all;
    int index;
    pthread_t id;
} worker;

struct cpu_threads {
    _Alignas(64) atomic_ullong region; /* number << COUNT_BITS | participating threads */
    _Alignas(64) atomic_int pending;   /* participants still at work, except for the caller */
    _Alignas(64) atomic_int sleeping;  /* threads that wait for `begun` */
    atomic_bool caller_sleeps;         /* for `ended` */
    atomic_flag busy;
    cpu_work *work; /* of the region; NULL: shut down */
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t begun, ended;
    pid_t process; /* the process that started the threads */
    int count, spins;
    worker worker[]; /* count - 1 */
};

/* ---- waiting ---- */

/* Waits for the region after `seen`. */
static uint64_t next_region(cpu_threads *threads, uint64_t seen, bool took_part)
{
    uint64_t region = atomic_load_explicit(&threads->region, memory_order_acquire);
    for (int i = 0; took_part && i < threads->spins && region == seen; i++) {
        cpu_pause();
        region = atomic_load_explicit(&threads->region, memory_order_acquire);
    }
    if (region != seen) return region;
    pthread_mutex_lock(&threads->lock);
    atomic_fetch_add(&threads->sleeping, 1);
    while ((region = atomic_load(&threads->region)) == seen) pthread_cond_wait(&threads->begun, &threads->lock);
    atomic_fetch_sub(&threads->sleeping, 1);
    pthread_mutex_unlock(&threads->lock);
    return region;
}

static void publish(cpu_threads *threads, int count, cpu_work *work, void *context)
{
    uint64_t number = atomic_load_explicit(&threads->region, memory_order_relaxed) >> COUNT_BITS;
    threads->work = work;
    threads->context = context;
    atomic_store_explicit(&threads->pending, count - 1, memory_order_relaxed);
    atomic_store(&threads->region, (number + 1) << COUNT_BITS | (uint64_t)count);
    if (atomic_load(&threads->sleeping) == 0) return;
    pthread_mutex_lock(&threads->lock);
    pthread_cond_broadcast(&threads->begun);
    pthread_mutex_unlock(&threads->lock);
}

static void wait_for_all(cpu_threads *threads)
{
    for (int i = 0; i < threads->spins; i++) {
        if (atomic_load_explicit(&threads->pending, memory_order_acquire) == 0) return;
        cpu_pause();
    }
    pthread_mutex_lock(&threads->lock);
    atomic_store(&threads->caller_sleeps, true);
    while (atomic_load(&threads->pending) > 0) pthread_cond_wait(&threads->ended, &threads->lock);
    atomic_store(&threads->caller_sleeps, false);
    pthread_mutex_unlock(&threads->lock);
}

static void count_out(cpu_threads *threads)
{
    if (atomic_fetch_sub(&threads->pending, 1) != 1 || !atomic_load(&threads->caller_sleeps)) return;
    pthread_mutex_lock(&threads->lock);
    pthread_cond_signal(&threads->ended);
    pthread_mutex_unlock(&threads->lock);
}

/* ---- working ---- */

static void *run_worker(void *argument)
{
    const worker *self = argument;
    cpu_threads *threads = self->all;
    bool takes_part = true;
    for (uint64_t region = 0;;) {
        region = next_region(threads, region, takes_part);
        takes_part = self->index < (int)(region & ((1 << COUNT_BITS) - 1));
        if (!takes_part) continue;
        if (threads->work == NULL) return NULL;
        threads->work(threads->context, self->index);
        count_out(threads);
    }
}

bool cpu_threads_run(cpu_threads *threads, int count, cpu_work *work, void *context)
{
    if (threads->process != getpid() || atomic_flag_test_and_set_explicit(&threads->busy, memory_order_acquire))
        return false;
    publish(threads, count, work, context);
    work(context, 0);
    wait_for_all(threads);
    atomic_flag_clear_explicit(&threads->busy, memory_order_release);
    return true;
}

int cpu_threads_count(const cpu_threads *threads)
{
    return threads->count;
}

int cpu_threads_patience(const cpu_threads *threads)
{
    return threads->spins;
}

/* ---- starting them ---- */

/* A pause takes 10 to 50 ns, depending on the processor. */
static int spins_of_time(void)
{
    enum { TRIED = 200, SAMPLES = 5 }; /* the minimum of several: a thread may be interrupted */
    double least = 1;
    for (int sample = 0; sample < SAMPLES; sample++) {
        double begun = sdlf_clock();
        for (int i = 0; i < TRIED; i++) cpu_pause();
        double took = sdlf_clock() - begun;
        least = took < least ? took : least;
    }
    int64_t nanoseconds = cpu_max((int64_t)(1e9 * least), TRIED);
    return (int)((int64_t)SPIN_NANOSECONDS * TRIED / nanoseconds);
}

static int choose_spins(int count, int available)
{
    const char *policy = getenv("OMP_WAIT_POLICY");
    if (policy != NULL && strcasecmp(policy, "passive") == 0) return 0;
    if (policy != NULL && strcasecmp(policy, "active") == 0) return INT_MAX;
    if (count == 1) return 0;
    return count > available ? SPINS_CROWDED : spins_of_time();
}

/* Binds each thread to the next available core and the caller to the first: the caller last, since it can run on no other core
 * afterwards. A failure affects only speed. */
static void bind(const cpu_threads *threads, int available)
{
    const char *wish = getenv("OMP_PROC_BIND");
    if (wish == NULL || strcasecmp(wish, "false") == 0 || available < threads->count) return;
    for (int i = threads->count - 1; i >= 0; i--) portable_bind(i == 0 ? pthread_self() : threads->worker[i - 1].id, i);
}

sdlf_status cpu_threads_create(cpu_threads **threads, int wanted)
{
    size_t size = sizeof(cpu_threads) + (size_t)(wanted - 1) * sizeof(worker);
    cpu_threads *made = aligned_alloc(_Alignof(cpu_threads), (size + 63) / 64 * 64);
    if (made == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory for %d threads", wanted);
    memset(made, 0, sizeof *made);
    atomic_flag_clear(&made->busy);
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->begun, NULL);
    pthread_cond_init(&made->ended, NULL);
    int available = portable_processors();
    made->spins = choose_spins(wanted, available);
    made->process = getpid();
    sigset_t every, before; /* signals are handled by the program's own threads */
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    for (made->count = 1; made->count < wanted; made->count++) {
        worker *next = &made->worker[made->count - 1];
        *next = (worker){.all = made, .index = made->count};
        if (pthread_create(&next->id, NULL, run_worker, next) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    bind(made, available);
    *threads = made;
    return SDLF_OK;
}

void cpu_threads_free(cpu_threads *threads)
{
    if (threads == NULL) return;
    if (threads->process == getpid()) {
        publish(threads, threads->count, NULL, NULL);
        for (int i = 1; i < threads->count; i++) pthread_join(threads->worker[i - 1].id, NULL);
        pthread_cond_destroy(&threads->ended);
        pthread_cond_destroy(&threads->begun);
        pthread_mutex_destroy(&threads->lock);
    }
    free(threads);
}

int cpu_threads_choose(int wanted)
{
    const char *variable = getenv("OMP_NUM_THREADS"); /* a list has the outermost level first */
    long set_to = variable != NULL ? strtol(variable, NULL, 10) : 0;
    if (wanted > 0) return wanted;
    int64_t available = set_to > 0 ? set_to : sdlf_machine_processors();
    return (int)cpu_min(available, CPU_MAX_THREADS);
}
