/* What lies between the products of a decoder layer. All numbers are float32, matrices are contiguous but where a stride is given. */

#include "products.h"

#include <stdatomic.h>
#include <string.h>

#include "threads.h"

/* sum = hidden + delta, and its RMS norm; without delta the norm of hidden. All [num_rows, width], `width` a multiple of 16; `sum` may
   be `hidden`. */
void maskwright_norm(const float *hidden, const float *delta, const float *weight, float eps, int64_t num_rows, int64_t width, float *sum, float *out) {
  for (int64_t at = 0; at < num_rows * width; at += width) {
    maskwright_chosen->add_and_normalize(hidden + at, delta == NULL ? NULL : delta + at, weight, eps, width, sum == NULL ? NULL : sum + at, out + at);
  }
}

/* out [num_rows, width] = activation(gate) * up, of inner [num_rows, stride]: gate, then up. */
void maskwright_gate(int activation, const float *inner, int64_t num_rows, int64_t stride, int64_t width, float *out) {
  for (int64_t row = 0; row < num_rows; row++) {
    maskwright_chosen->gated(activation, inner + row * stride, inner + row * stride + width, width, out + row * width);
  }
}

static uint16_t half_of(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
  if (size >= 0x47800000) return (uint16_t)(sign | (size > 0x7F800000 ? 0x7E00 : 0x7C00));
  if (size < 0x38800000) { /* below 2^-14 all are 2^-24 apart, as numbers from 0.5 on are */
    float small;
    memcpy(&small, &size, sizeof small);
    small += 0.5f;
    memcpy(&size, &small, sizeof size);
    return (uint16_t)(sign | (size - 0x3F000000));
  }
  return (uint16_t)(sign | ((size + 0xFFF + (size >> 13 & 1) - 0x38000000) >> 13));
}

static uint16_t bfloat_of(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return (uint16_t)(number != number ? 0x7FC0 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static uint8_t float8_of(float number) {
  number = nearest_float8(number < -448.0f ? -448.0f : number > 448.0f ? 448.0f : number);
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  uint32_t sign = bits >> 24 & 0x80, size = bits & 0x7FFFFFFF;
  if (number != number) return (uint8_t)(sign | 0x7F);
  return (uint8_t)(sign | (size < 0x3C800000 ? (uint32_t)(__builtin_fabsf(number) * 512.0f) : (size >> 20) - (120 << 3)));
}

void maskwright_store(int type, const float *x, int64_t count, uint8_t *out) {
  uint16_t *halves = (uint16_t *)out;
  switch (type) {
    case F32: memcpy(out, x, (size_t)count * sizeof *x); return;
    case F16: for (int64_t i = 0; i < count; i++) halves[i] = half_of(x[i]); return;
    case BF16: for (int64_t i = 0; i < count; i++) halves[i] = bfloat_of(x[i]); return;
    case FLOAT8: for (int64_t i = 0; i < count; i++) out[i] = float8_of(x[i]); return;
  }
}

void maskwright_turn(const Turn *turn) {
  const int64_t width = turn->head_dim, half = turn->half;
  for (int64_t row = 0; row < turn->num_rows; row++) {
    const float *heads = turn->heads + row * turn->stride;
    const int64_t size = turn->kv_type == F32 ? 4 : turn->kv_type == FLOAT8 ? 1 : 2, place = turn->slots[row] * turn->num_kv_heads * width;
    const int64_t angle = turn->angles == NULL ? row : turn->angles[row];
    float key[512];
    for (int64_t head = 0; head < turn->num_heads + turn->num_kv_heads; head++) {
      int64_t kv_head = head - turn->num_heads;
      float *to = kv_head < 0 ? turn->query + (row * turn->num_heads + head) * width : key;
      const float *norm = turn->norm == NULL ? NULL : turn->norm + head * width;
      maskwright_chosen->turn_head(heads + head * width, norm, turn->eps, turn->cosine + angle * half, turn->sine + angle * half, half, width, to);
      if (kv_head >= 0) maskwright_store(turn->kv_type, key, width, turn->keys + size * (place + kv_head * width));
    }
    const float *value = heads + (turn->num_heads + turn->num_kv_heads) * width;
    maskwright_store(turn->kv_type, value, turn->num_kv_heads * width, turn->values + size * place);
  }
}

typedef struct {
  const Attention *call;
  int64_t num_pieces; /* that the longest row may have */
  float *pieces;      /* [num_rows, num_pieces, num_heads, 2 + head_dim] */
  atomic_int has_failed; /* some thread had no memory */
} Pieces;

#define HEADS_AT_ONCE 256 /* of one piece each: as long as it pays to have another thread join them */

static int64_t num_heads(const Attention *call) { return call->num_kv_heads * call->heads_per_kv_head; }

static int64_t first_seen(const Attention *call, int64_t row) {
  int64_t last = call->lengths[row];
  return call->window > 0 && last > call->window ? last - call->window : 0;
}

static void attend_pieces(void *context, int64_t begin, int64_t end) {
  static _Thread_local void *memory;
  static _Thread_local size_t size;
  Pieces *all = context;
  const Attention *call = all->call;
  float(*weights)[PIECE] = maskwright_kept(&memory, &size, (size_t)num_heads(call) * (sizeof *weights + ROOM(call->head_dim) * sizeof(float)));
  if (weights == NULL) {
    atomic_store(&all->has_failed, 1);
    return;
  }
  for (int64_t place = begin; place < end; place++) {
    int64_t row = place / all->num_pieces, last = call->lengths[row], first = first_seen(call, row) + place % all->num_pieces * PIECE;
    if (first >= last) continue;
    const float *query = call->query + row * num_heads(call) * call->head_dim;
    float *out = all->pieces + place * num_heads(call) * (2 + call->head_dim);
    maskwright_chosen->attend(call, query, call->tables + row * call->table_width, first, last < first + PIECE ? last : first + PIECE, last, weights, out);
  }
}

/* Of heads of all rows, numbered together. */
static void join_heads(void *context, int64_t begin, int64_t end) {
  const Pieces *all = context;
  const Attention *call = all->call;
  const int64_t heads = num_heads(call), size = 2 + call->head_dim;
  for (int64_t place = begin; place < end; place++) {
    const int64_t row = place / heads, count = (call->lengths[row] - first_seen(call, row) + PIECE - 1) / PIECE;
    float *pieces = all->pieces + (row * all->num_pieces * heads + place % heads) * size;
    maskwright_chosen->join(pieces, count, heads * size, call->head_dim, call->out + place * call->head_dim);
  }
}

/* Returns 0, or -1 when there is no memory. */
int maskwright_attend(const Attention *call, int num_threads) {
  static _Thread_local void *memory;
  static _Thread_local size_t size;
  int64_t longest = call->window > 0 && call->window < call->max_tokens ? call->window : call->max_tokens;
  int64_t num_pieces = (longest + PIECE - 1) / PIECE, count = call->num_rows * num_pieces;
  if (count == 0) return 0;
  Pieces pieces = {call, num_pieces, maskwright_kept(&memory, &size, (size_t)(count * num_heads(call) * (2 + call->head_dim)) * sizeof(float)), 0};
  if (pieces.pieces == NULL) return -1;
  run_in_parallel(attend_pieces, &pieces, count, 1, num_threads);
  if (atomic_load(&pieces.has_failed)) return -1;
  run_in_parallel(join_heads, &pieces, call->num_rows * num_heads(call), 1 + HEADS_AT_ONCE / num_pieces, num_threads);
  return 0;
}
