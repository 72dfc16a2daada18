/* What lies between the products of a decoder layer: what Python calls. All numbers are float32, matrices are contiguous but where a
   stride is given. */

#include "products.h"

#include <stdlib.h>

#include "threads.h"

/* sum = hidden + delta, and its RMS norm; without delta the norm of hidden. All [num_rows, width], `width` a multiple of 16. */
void maskwright_norm(const float *hidden, const float *delta, const float *weight, float eps, int64_t num_rows, int64_t width, float *sum, float *out) {
  for (int64_t at = 0; at < num_rows * width; at += width) {
    maskwright_chosen->add_and_normalize(hidden + at, delta == NULL ? NULL : delta + at, weight, eps, width, sum == NULL ? NULL : sum + at, out + at);
  }
}

/* out [num_rows, width] = silu(gate) * up, of inner [num_rows, stride]: gate, then up. */
void maskwright_silu(const float *inner, int64_t num_rows, int64_t stride, int64_t width, float *out) {
  for (int64_t row = 0; row < num_rows; row++) {
    maskwright_chosen->gated_silu(inner + row * stride, inner + row * stride + width, width, out + row * width);
  }
}

typedef struct {
  const float *heads;          /* [num_rows, stride]: queries, keys and values */
  const float *cosine, *sine;  /* [num_rows, half] */
  const float *norm;           /* [num_heads + num_kv_heads, head_dim], or NULL */
  const int64_t *slots;        /* [num_rows] */
  float *query;                /* [num_rows, num_heads, head_dim] */
  float *keys, *values;        /* [places, num_kv_heads, head_dim] */
  int64_t num_rows, stride, num_heads, num_kv_heads, head_dim, half;
  float eps;
} Turn;

/* Queries and keys normalised and turned by their positions; keys and values are written into the cache. */
void maskwright_turn(const Turn *turn) {
  const int64_t width = turn->head_dim, half = turn->half;
  for (int64_t row = 0; row < turn->num_rows; row++) {
    const float *heads = turn->heads + row * turn->stride;
    int64_t place = turn->slots[row] * turn->num_kv_heads * width;
    for (int64_t head = 0; head < turn->num_heads + turn->num_kv_heads; head++) {
      int64_t kv_head = head - turn->num_heads;
      float *to = kv_head < 0 ? turn->query + (row * turn->num_heads + head) * width : turn->keys + place + kv_head * width;
      const float *norm = turn->norm == NULL ? NULL : turn->norm + head * width;
      maskwright_chosen->turn_head(heads + head * width, norm, turn->eps, turn->cosine + row * half, turn->sine + row * half, half, width, to);
    }
    const float *value = heads + (turn->num_heads + turn->num_kv_heads) * width;
    __builtin_memcpy(turn->values + place, value, (size_t)(turn->num_kv_heads * width) * sizeof *value);
  }
}

static void attend_heads(void *context, int64_t begin, int64_t end) {
  static _Thread_local void *memory;
  static _Thread_local size_t size;
  const Attention *call = context;
  float *scores = maskwright_kept(&memory, &size, (size_t)(call->heads_per_kv_head * call->max_tokens) * sizeof *scores);
  if (scores == NULL) abort();
  for (int64_t place = begin; place < end; place++) {
    int64_t row = place / call->num_kv_heads, last = call->lengths[row], first = call->window > 0 && last > call->window ? last - call->window : 0;
    int64_t at = place * call->heads_per_kv_head * call->head_dim;
    maskwright_chosen->attend(call, call->query + at, call->tables + row * call->table_width, first, last, place % call->num_kv_heads, scores, call->out + at);
  }
}

void maskwright_attend(const Attention *call, int num_threads) {
  int is_small = call->max_tokens * call->num_rows < 64; /* not worth the trouble of sharing */
  run_in_parallel(attend_heads, (void *)call, call->num_rows * call->num_kv_heads, 1, is_small ? 1 : num_threads);
}
