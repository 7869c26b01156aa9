/* The core of DAWA in C: partition, weights, inference. No Python at run time.

   Build (see README.md):  cc dawa_core.c -L. -lblowfish -lm -o dawa_core

   The noise here is a toy: a linear congruential generator is NOT private. A real
   program draws geometric and Laplace noise from a secure source and passes it in. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "blowfish_c.h"

static uint64_t state = 20140901;

static double toy_uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double toy_laplace(double scale)
{
    double one = toy_uniform(), two = toy_uniform();
    return scale * (log(one) - log(two));
}

static void check(int64_t result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s failed with code %" PRId64 "\n", what, result);
        exit(1);
    }
}

int main(void)
{
    enum { CELLS = 16, LEVELS = 5, FAN_OUT = 2, QUERIES = 3 };
    const int64_t counts[CELLS] = {5, 5, 6, 5, 90, 88, 91, 90,
                                   90, 89, 90, 91, 0, 0, 1, 0};
    /* Prices of 20 counts for every bucket, on a grid of 2^-4 counts. */
    const int64_t grid = -4;
    int64_t prices[LEVELS], noise[LEVELS * (CELLS + 1)], boundaries[CELLS + 1];
    for (int k = 0; k < LEVELS; k++)
        prices[k] = 20 << 4;
    for (int i = 0; i < LEVELS * (CELLS + 1); i++)
        noise[i] = (int64_t)floor(-16.0 * 2.0 * log(toy_uniform()));
    int64_t buckets = blowfish_least_cost_partition(
        counts, CELLS, prices, LEVELS, noise, LEVELS * (CELLS + 1), grid,
        boundaries, CELLS + 1);
    check(buckets, "the partition");
    printf("buckets:");
    for (int64_t i = 0; i <= buckets; i++)
        printf(" %" PRId64, boundaries[i]);

    /* Queries over bucket numbers: everything, the first bucket, the last one. */
    int64_t starts[QUERIES] = {0, 0, buckets - 1}, ends[QUERIES] = {buckets, 1, buckets};
    int64_t nodes = blowfish_tree_nodes(buckets, FAN_OUT);
    check(nodes, "the tree");
    double *weights = malloc(sizeof *weights * (size_t)(nodes + 1));
    double *noisy = calloc((size_t)nodes, sizeof *noisy);
    double *variances = malloc(sizeof *variances * (size_t)nodes);
    double *estimate = malloc(sizeof *estimate * (size_t)buckets);
    check(blowfish_greedy_weights(starts, ends, QUERIES, NULL, 0, buckets, FAN_OUT,
                                  BLOWFISH_DECAY, weights, nodes + 1),
          "the weights");

    /* Measure every node: leaves first, each level the sums of the one below. */
    for (int64_t b = 0; b < buckets; b++)
        for (int64_t c = boundaries[b]; c < boundaries[b + 1]; c++)
            noisy[b] += (double)counts[c];
    int64_t below = 0, size = buckets;
    while (size > 1) {
        int64_t above = below + size;
        for (int64_t i = 0; i < size; i++)
            noisy[above + i / FAN_OUT] += noisy[below + i];
        below = above;
        size = (size + FAN_OUT - 1) / FAN_OUT;
    }
    const double epsilon = 1.0;
    for (int64_t i = 0; i < nodes; i++) {
        double scale = weights[i] > 0 ? 1.0 / (epsilon * weights[i]) : INFINITY;
        variances[i] = 2.0 * scale * scale;
        noisy[i] += weights[i] > 0 ? toy_laplace(scale) : 0.0;
    }
    check(blowfish_tree_least_squares(noisy, variances, nodes, buckets, FAN_OUT,
                                      estimate),
          "the inference");
    printf("\nestimates:");
    for (int64_t b = 0; b < buckets; b++)
        printf(" %.1f", estimate[b]);
    printf("\npredicted error: %.2f\n", weights[nodes]);
    free(weights), free(noisy), free(variances), free(estimate);
    return 0;
}
