/* Part of a concatenation: `outer` runs of `length` elements, each at its place in a run of `whole` of y. */
static void place(const float *x, float *y, int outer, int length, int whole)
{
    for (int i = 0; i < outer; i++)
        for (int j = 0; j < length; j++) y[i * whole + j] = x[i * length + j];
}
