/* A C library that gets an entry of blowfish_fast as a function pointer.

   Build:  cc -shared -fPIC with_address.c -o with_address.so
   Python hands over the address (see README.md); no linking with blowfish_fast. */
#include <stdlib.h>
#include "blowfish_c.h"

/* Partition many rows of counts with one pointer; write the buckets of each row. */
int64_t partition_rows(blowfish_least_cost_partition_t partition, const int64_t *rows,
                       int64_t count, int64_t cells, int64_t price, int64_t *buckets)
{
    int64_t levels = 0, result = 0;
    for (int64_t size = cells; size > 0; size >>= 1)
        levels++;
    int64_t *prices = malloc(sizeof *prices * (size_t)levels);
    int64_t *boundaries = malloc(sizeof *boundaries * (size_t)(cells + 1));
    if (prices == NULL || boundaries == NULL) {
        free(prices), free(boundaries);
        return BLOWFISH_OUT_OF_MEMORY;
    }
    for (int64_t k = 0; k < levels; k++)
        prices[k] = price;
    for (int64_t row = 0; row < count && result >= 0; row++) {
        result = partition(rows + row * cells, cells, prices, levels, NULL, 0, 0,
                           boundaries, cells + 1);
        buckets[row] = result;
    }
    free(prices), free(boundaries);
    return result < 0 ? result : 0;
}
