/* Caches of objects of one size, cut from kernel pages: what is allocated and freed often stays warm and needs no page of
   its own. */

#include "kernel.h"

struct free_object {
    struct free_object *next;
};

void *cache_allocate(struct cache *cache)
{
    uint64_t saved = acquire(&cache->lock);
    struct free_object *object = cache->free;
    if (!object) {
        char *page = kernel_pages(0);
        for (size_t at = 0; at + cache->size <= PAGE_SIZE; at += cache->size) {
            object = (struct free_object *)(page + at);
            object->next = cache->free;
            cache->free = object;
        }
    }
    cache->free = object->next;
    release(&cache->lock, saved);
    return object;
}

void cache_free(struct cache *cache, void *freed)
{
    struct free_object *object = freed;
    uint64_t saved = acquire(&cache->lock);
    object->next = cache->free;
    cache->free = object;
    release(&cache->lock, saved);
}
