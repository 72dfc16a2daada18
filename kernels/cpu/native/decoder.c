/* A step of a decoder in which every sequence has few new tokens, in one call: from embedded tokens to logits. It is what layers.py and
   modules.py compute product by product, by the same functions in the same order, and has the same bits. */

#include "products.h"

#include <string.h>

/* One matrix product, y = x W^T + b. */
typedef struct {
  const Run *runs;
  const int32_t *places; /* see maskwright_multiply */
  const float *bias;     /* [num_rows], or NULL */
  int64_t num_runs, num_rows, width; /* of what is computed; more than num_rows where a part is filled up */
} Linear;

typedef struct {
  Linear qkv, output, up, down;
  const float *input_norm, *after_attention, *mlp_norm, *after_mlp; /* [hidden_size]; two of them may be NULL */
  const float *head_norm; /* [num_heads + num_kv_heads, head_dim], or NULL */
  uint8_t *keys, *values; /* [places, num_kv_heads, head_dim], of `kv_type` */
  int64_t window;         /* 0: all */
  int64_t rope;           /* -1: heads are not turned */
} Layer;

typedef struct {
  const Layer *layers;
  Linear head;
  const float *final_norm;
  const Matrix *embedding; /* of blocks or numbers; NULL: steps have embedded tokens */
  int64_t num_layers, hidden_size, inner_size, num_heads, num_kv_heads, head_dim, block_size, activation, kv_type; /* as in Attention */
  float eps, scale, embedding_scale;
} Decoder;

typedef struct {
  const float *cosine, *sine; /* [positions, half] */
  int64_t half;
} Angles;

typedef struct {
  const int64_t *token_ids, *positions; /* [num_rows]: each row sees its sequence up to its own position */
  float *hidden;             /* [num_rows, hidden_size]: embedded tokens; is written to. NULL: they are embedded here */
  const Angles *angles;      /* one for each rope */
  const int64_t *tables;     /* [num_rows, table_width] */
  const int64_t *logit_rows; /* [num_logits] */
  float *logits;             /* [num_logits, width of the head] */
  const int64_t *columns;    /* [num_columns], ascending: logits that are wanted, others may be 0; NULL: all */
  /* Or [num_logits] masks, of `num_words` words each, of tokens: those are wanted that some mask has, and are no more than `most_columns`. */
  const uint32_t *const *masks;
  int64_t num_rows, num_logits, table_width, num_columns, num_words, most_columns;
} Step;

/* Where each row's keys and values go, and how many tokens it sees. */
typedef struct {
  int64_t *slots, *lengths; /* [num_rows] */
  int64_t longest;
} Places;

static int multiply_wanted(const Linear *linear, const float *x, int64_t num_rows, int64_t width, float *out, Wanted wanted, int num_threads) {
  const Output output = {out, linear->width, linear->places};
  if (maskwright_multiply_wanted(linear->runs, (int)linear->num_runs, x, num_rows, width, &output, wanted, num_threads) != 0) return -1;
  for (int64_t row = 0; linear->bias != NULL && row < num_rows; row++) {
    for (int64_t i = 0; i < linear->num_rows; i++) out[row * linear->width + i] += linear->bias[i];
  }
  return 0;
}

static int multiply(const Linear *linear, const float *x, int64_t num_rows, int64_t width, float *out, int num_threads) {
  const Wanted all = {NULL, 0};
  return multiply_wanted(linear, x, num_rows, width, out, all, num_threads);
}

static int64_t widest(const Decoder *decoder) {
  int64_t most = decoder->hidden_size > decoder->inner_size ? decoder->hidden_size : decoder->inner_size;
  most = most > decoder->num_heads * decoder->head_dim ? most : decoder->num_heads * decoder->head_dim;
  for (const Layer *layer = decoder->layers; layer < decoder->layers + decoder->num_layers; layer++) {
    for (const Linear *linear = &layer->qkv; linear <= &layer->down; linear++) most = most > linear->width ? most : linear->width;
  }
  return most;
}

/* From `normed` to `out`, which is [num_rows, layer->output.width]. */
static int attention(const Decoder *decoder, const Layer *layer, const Step *step, const Places *places, const float *normed, float *projected, float *query, float *out, int num_threads) {
  static const Angles still;
  const Angles *angles = layer->rope < 0 ? &still : step->angles + layer->rope;
  const int64_t width = decoder->num_heads * decoder->head_dim;
  if (multiply(&layer->qkv, normed, step->num_rows, decoder->hidden_size, projected, num_threads) != 0) return -1;
  Turn turn = {projected, angles->cosine, angles->sine, step->positions, layer->head_norm, places->slots, query, layer->keys, layer->values, step->num_rows,
               layer->qkv.width, decoder->num_heads, decoder->num_kv_heads, decoder->head_dim, angles->half, decoder->eps, (int32_t)decoder->kv_type};
  maskwright_turn(&turn);
  Attention call = {query, layer->keys, layer->values, step->tables, places->lengths, projected, step->num_rows, decoder->num_kv_heads,
                    decoder->num_heads / decoder->num_kv_heads, decoder->head_dim, decoder->block_size, step->table_width, layer->window,
                    places->longest, decoder->scale, (int32_t)decoder->kv_type};
  if (maskwright_attend(&call, num_threads) != 0) return -1;
  return multiply(&layer->output, projected, step->num_rows, width, out, num_threads);
}

static void find_places(const Decoder *decoder, const Step *step, Places *places) {
  const int64_t size = decoder->block_size;
  places->longest = 0;
  for (int64_t row = 0; row < step->num_rows; row++) {
    const int64_t position = step->positions[row];
    places->slots[row] = step->tables[row * step->table_width + position / size] * size + position % size;
    places->lengths[row] = position + 1;
    if (position >= places->longest) places->longest = position + 1;
  }
}

/* The columns that masks have, in memory that lasts until the next call; all of them where they are too many. Returns 0, or -1 when there is none. */
static int find_wanted(const Step *step, Wanted *wanted) {
  static _Thread_local void *memory;
  static _Thread_local size_t size;
  wanted->columns = step->columns, wanted->count = step->num_columns;
  if (step->masks == NULL) return 0;
  int64_t *columns = maskwright_kept(&memory, &size, (size_t)(step->most_columns + 1) * sizeof *columns), count = 0;
  if (columns == NULL) return -1;
  for (int64_t word = 0; word < step->num_words; word++) {
    uint32_t bits = 0;
    for (int64_t row = 0; row < step->num_logits; row++) bits |= step->masks[row][word];
    for (; bits != 0; bits &= bits - 1) {
      if (count == step->most_columns) return 0;
      columns[count++] = 32 * word + __builtin_ctz(bits);
    }
  }
  wanted->columns = columns, wanted->count = count;
  return 0;
}

/* Returns 0, -1 when there is no memory, or -2 for a token that there is not; what the cache has of the new tokens is then not to be used. */
int maskwright_decode(const Decoder *decoder, const Step *step, int num_threads) {
  static _Thread_local void *memory;
  static _Thread_local size_t size;
  const int64_t hidden_size = decoder->hidden_size, num_rows = step->num_rows, each = num_rows * widest(decoder);
  const size_t numbers = (size_t)(4 * each + num_rows * hidden_size) * sizeof(float);
  float *normed = maskwright_kept(&memory, &size, numbers + 8 + 2 * (size_t)num_rows * sizeof(int64_t)), *hidden = step->hidden, *delta = NULL;
  if (normed == NULL) return -1;
  int64_t *of_rows = (int64_t *)((char *)normed + (numbers + 7) / 8 * 8);
  Places places = {of_rows, of_rows + num_rows, 0};
  find_places(decoder, step, &places);
  if (hidden == NULL) {
    hidden = normed + 4 * each;
    if (maskwright_read_rows(decoder->embedding, step->token_ids, num_rows, decoder->embedding_scale, hidden) != 0) return -2;
  }
  float *first = normed + each, *second = first + each, *third = second + each;
  for (const Layer *layer = decoder->layers; layer < decoder->layers + decoder->num_layers; layer++) {
    maskwright_norm(hidden, delta, layer->input_norm, decoder->eps, num_rows, hidden_size, hidden, normed);
    if (attention(decoder, layer, step, &places, normed, first, second, third, num_threads) != 0) return -1;
    if (layer->after_attention != NULL) maskwright_norm(third, NULL, layer->after_attention, decoder->eps, num_rows, hidden_size, NULL, third);
    maskwright_norm(hidden, third, layer->mlp_norm, decoder->eps, num_rows, hidden_size, hidden, normed);
    if (multiply(&layer->up, normed, num_rows, hidden_size, first, num_threads) != 0) return -1;
    maskwright_gate((int)decoder->activation, first, num_rows, layer->up.width, decoder->inner_size, second);
    if (multiply(&layer->down, second, num_rows, decoder->inner_size, third, num_threads) != 0) return -1;
    if (layer->after_mlp != NULL) maskwright_norm(third, NULL, layer->after_mlp, decoder->eps, num_rows, hidden_size, NULL, third);
    delta = third;
  }
  for (int64_t i = 0; i < step->num_logits; i++) {
    int64_t at = step->logit_rows[i] * hidden_size;
    maskwright_norm(hidden + at, delta + at, decoder->final_norm, decoder->eps, 1, hidden_size, second + i * hidden_size, first + i * hidden_size);
  }
  Wanted wanted;
  if (find_wanted(step, &wanted) != 0) return -1;
  if (wanted.columns != NULL) memset(step->logits, 0, (size_t)(step->num_logits * decoder->head.width) * sizeof *step->logits);
  return multiply_wanted(&decoder->head, first, step->num_logits, hidden_size, step->logits, wanted, num_threads);
}

/* A step, and the draw from its logits. Returns as `maskwright_decode`, or -3 when there is no memory to draw. */
int maskwright_step(const Decoder *decoder, const Step *step, const Picks *picks, int num_threads) {
  const int problem = maskwright_decode(decoder, step, num_threads);
  if (problem != 0) return problem;
  return maskwright_pick(picks, num_threads) != 0 ? -3 : 0;
}
