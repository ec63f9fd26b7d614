/* SPDX-License-Identifier: MIT */
/* Two models in two threads: both train and test their own networks concurrently.
 *
 *     two_threads
 *
 * Different models share nothing, so there is no lock. Then both train again, one after the other: the weights are
 * bitwise the same. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include <sdlf/sdlf.h>

typedef struct job {
    const char *net;                    /* a built-in network */
    const sdlf_dataset *samples, *test; /* which any number of threads may read */
    uint32_t weights;                   /* the result: a checksum of all parameters */
    double accuracy;
} job;

static sdlf_status train(sdlf_model *net, job *j)
{
    sdlf_trainer *trainer = NULL;
    sdlf_trainer_options options = {.batch = 32, .epochs = 1, .threads = 1}; /* one compute thread for each model */
    options.optimizer = sdlf_sgd(.momentum = 0.9);
    options.schedule = sdlf_one_cycle(.peak = 0.05f);
    sdlf_status status = sdlf_trainer_create(&trainer, net, j->samples, NULL, &options);
    if (status == SDLF_OK) status = sdlf_trainer_run(trainer);
    sdlf_trainer_free(trainer);
    return status;
}

static sdlf_status test(sdlf_model *net, job *j)
{
    sdlf_calculator *cpu = NULL;
    sdlf_evaluation result = {0};
    sdlf_status status = sdlf_calculator_open(&cpu, "cpu", &(sdlf_calculator_options){.threads = 1});
    if (status == SDLF_OK) status = sdlf_evaluate(&result, net, j->test, cpu, 0);
    j->accuracy = sdlf_evaluation_accuracy(&result);
    sdlf_evaluation_release(&result);
    sdlf_calculator_close(cpu);
    return status;
}

/* Returns NULL on success. An error message belongs to the thread in which it occurred. */
static void *work(void *user)
{
    job *j = user;
    sdlf_model *net = NULL;
    sdlf_status status = sdlf_network_builtin(&net, j->net);
    if (status == SDLF_OK) status = train(net, j);
    if (status == SDLF_OK) status = test(net, j);
    if (status == SDLF_OK) j->weights = sdlf_model_hash(net);
    if (status != SDLF_OK) fprintf(stderr, "two_threads: %s: %s\n", j->net, sdlf_error_message());
    sdlf_model_free(net);
    return status == SDLF_OK ? NULL : j;
}

static int work_together(job *jobs)
{
    pthread_t thread[2];
    int failed = 0, started = 0;
    while (started < 2 && pthread_create(&thread[started], NULL, work, &jobs[started]) == 0) started++;
    if (started < 2) fprintf(stderr, "two_threads: a thread could not be started\n");
    for (int i = 0; i < started; i++) {
        void *result = NULL;
        failed |= pthread_join(thread[i], &result) != 0 || result != NULL;
    }
    return failed || started < 2;
}

int main(void)
{
    sdlf_dataset *samples = NULL, *digits = NULL;
    int failed = sdlf_dataset_open(&samples, "digits:2000", SDLF_SPLIT_TRAIN) != SDLF_OK ||
                 sdlf_dataset_open(&digits, "digits:2000", SDLF_SPLIT_TEST) != SDLF_OK;
    if (failed) fprintf(stderr, "two_threads: %s\n", sdlf_error_message());
    job together[2] = {{"mlp", samples, digits, 0, 0}, {"lenet5", samples, digits, 0, 0}};
    job alone[2] = {together[0], together[1]};
    failed = failed || work_together(together) || work(&alone[0]) || work(&alone[1]);
    for (int i = 0; i < 2 && !failed; i++)
        printf("%-6s  test %.1f%%  weights %08x, %s\n", together[i].net, 100 * together[i].accuracy,
               (unsigned)together[i].weights,
               together[i].weights == alone[i].weights ? "the same alone" : "OTHERS ALONE");
    sdlf_dataset_free(samples);
    sdlf_dataset_free(digits);
    return failed || together[0].weights != alone[0].weights || together[1].weights != alone[1].weights;
}
