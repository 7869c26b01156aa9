/* Memory of arrays in compiled entries, laid out as Numba's code reads it. */
#include <stdlib.h>
#include <string.h>
#include "blowfish_c.h"

typedef struct {
    size_t references;
    void (*destroy)(void *, size_t, void *);
    void *destroy_info;
    void *data;
    size_t size;
} memory_info;

__attribute__((visibility("hidden")))
void *NRT_MemInfo_alloc_aligned(size_t size, uint32_t align)
{
    size_t wanted = align < sizeof(void *) ? sizeof(void *) : align;
    memory_info *info = malloc(sizeof *info);
    void *data = NULL;
    if (info == NULL)
        return NULL;
    if (posix_memalign(&data, wanted, size > 0 ? size : 1) != 0) {
        free(info);
        return NULL;
    }
    info->references = 1;
    info->destroy = NULL;
    info->destroy_info = NULL;
    info->data = data;
    info->size = size;
    return info;
}

__attribute__((visibility("hidden")))
void NRT_MemInfo_call_dtor(memory_info *info)
{
    free(info->data);
    free(info);
}
