/* SPDX-License-Identifier: MIT */
/* y = weight x + bias, where weight is units x inputs. No bias: NULL. */
static void fully_connected(const float *x, const float *weight, const float *bias, float *y, int inputs, int units)
{
    for (int u = 0; u < units; u++, weight += inputs) {
        float sum = bias != NULL ? bias[u] : 0;
        for (int i = 0; i < inputs; i++) sum += weight[i] * x[i];
        y[u] = sum;
    }
}
