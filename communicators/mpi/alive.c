/* SPDX-License-Identifier: MIT */
/* Checks that the other ranks are alive: asked by a rank that has waited for a while, or that always wants to know;
 * answered by each rank's thread, however busy that rank is. A rank that is stopped, or whose machine or network has
 * failed, does not answer. */
#include "communicators/mpi/queue.h"

#include "framework/clock.h"

enum { QUESTION = 1, ANSWER };

void mpi_answer(mpi_queue *queue)
{
    for (int found = 1; found;) {
        MPI_Status from;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, queue->questions, &found, &from);
        if (!found) break;
        int where = from.MPI_SOURCE, tag = from.MPI_TAG;
        MPI_Recv(NULL, 0, MPI_BYTE, where, tag, queue->questions, MPI_STATUS_IGNORE);
        queue->heard[where] = sdlf_clock();
        if (tag == QUESTION) {
            MPI_Request sent;
            MPI_Isend(NULL, 0, MPI_BYTE, where, ANSWER, queue->questions, &sent);
            MPI_Request_free(&sent); /* an empty message: no buffer must be kept */
        }
    }
}

sdlf_status mpi_ask(mpi_queue *queue, double begun, double *asked)
{
    double now = sdlf_clock(), pause = queue->timeout / 8;
    mpi_answer(queue);
    if (now - begun < pause || now - *asked < pause) return SDLF_OK;
    for (int i = 0; i < queue->rank_count; i++) {
        double last = queue->heard[i] > begun ? queue->heard[i] : begun;
        if (i == queue->rank) continue;
        if (now - last > queue->timeout)
            return sdlf_fail(
                SDLF_ERROR_DEVICE,
                "rank %d on %s has not answered for %.0f seconds: it hangs, is stopped, or cannot be reached "
                "any more",
                i, queue->hosts[i], now - last);
        int sent = 1;
        MPI_Test(&queue->question[i], &sent, MPI_STATUS_IGNORE);
        if (sent) MPI_Isend(NULL, 0, MPI_BYTE, i, QUESTION, queue->questions, &queue->question[i]);
    }
    *asked = now;
    return SDLF_OK;
}

/* At the start, and after this rank itself was stopped or busy for a while, the others have the whole timeout to
 * answer. */
sdlf_status mpi_watch(mpi_queue *queue)
{
    double now = sdlf_clock();
    if (now - queue->idle > queue->timeout / 2) queue->watched = now;
    queue->idle = now;
    return mpi_ask(queue, queue->watched, &queue->asked_idle);
}
