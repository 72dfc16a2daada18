/* Draws: what `kernels/sampler/reference.py` does, for rows without a program. Weights are summed as integers, so no order matters. */

#include "products.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "threads.h"

#define FEW_OF 8       /* where at most every eighth token may be drawn, these are put side by side */
#define SUM_CHUNK 1024 /* candidates among which it is looked for one at a time */
#define BINS 2048
#define TOP_CHUNK 256  /* tokens that are passed over together, where all are less probable than those found */

/* What is drawn of a row. */
typedef struct {
  int64_t token; /* -1 where nothing is allowed */
  int64_t num_allowed;
  double kept_mass; /* NaN, as logprob, unless the model `is_told` of */
  float logprob;
  uint8_t bans_overridden, is_number; /* is_number: no logit is NaN */
} Picked;

struct Picks {
  const float *logits;          /* [num_rows, stride] */
  const uint32_t *const *masks; /* [num_rows]: the tokens that each row may draw, NULL: all; NULL: no row is constrained */
  const int64_t *offsets, *bias_ids; /* [num_rows + 1], [entries], or NULL: as TokenValues */
  const float *bias;        /* [entries]; -infinity bans the token */
  const int64_t *seen_offsets, *seen_ids; /* the same of tokens that were seen, or NULL */
  const float *seen_counts;
  const float *temperature, *top_p, *min_p, *repetition, *presence, *frequency; /* [num_rows], as the next three */
  const int32_t *top_k;
  const int64_t *seed, *position;
  const int64_t *given;     /* [num_rows]: tokens that were drawn elsewhere, DRAW of rows to be drawn here; NULL: all rows are */
  Picked *picked;           /* [num_rows] */
  int64_t *top_token;       /* [num_rows, num_top]: the most probable tokens, the lower id first on ties */
  float *top_logprob;
  int64_t num_rows, stride, vocab_size, is_told, num_top; /* num_top 0 unless the model `is_told` of */
};

#define DRAW -2 /* in `given` */

/* Tokens of a row that may be drawn, and perhaps others, whose scores are -infinity. */
typedef struct {
  int32_t *ids; /* [count], ascending; NULL: all tokens in their order */
  float *scores, *weights; /* [count] */
  int64_t count;
  float best; /* the largest score */
  float unit; /* a power of two: weights are floor(weight * unit) when they are summed */
} Candidates;

static float bounded(float x) { return x != x || x < -3.402823466e38f ? -3.402823466e38f : x > 3.402823466e38f ? 3.402823466e38f : x; }

static int is_in(const uint32_t *bits, int64_t token) { return bits[token / 32] >> token % 32 & 1; }

/* In steps that vectors have; not all processors that this is compiled for count bits at once. */
static int64_t num_set(const uint32_t *bits, int64_t num_words) {
  int64_t count = 0;
  for (int64_t i = 0; i < num_words; i++) {
    uint32_t pairs = bits[i] - (bits[i] >> 1 & 0x55555555), fours = (pairs & 0x33333333) + (pairs >> 2 & 0x33333333);
    uint32_t bytes = (fours + (fours >> 4)) & 0x0F0F0F0F;
    bytes += bytes >> 8;
    count += (bytes + (bytes >> 16)) & 63;
  }
  return count;
}

/* ---- which tokens, and their scores */

static void set_allowed(const Picks *picks, int64_t row, uint32_t *allowed, int64_t num_words) {
  const uint32_t *mask = picks->masks == NULL ? NULL : picks->masks[row];
  if (mask == NULL) memset(allowed, 0xFF, (size_t)num_words * sizeof *allowed);
  else memcpy(allowed, mask, (size_t)num_words * sizeof *allowed);
  if (picks->vocab_size % 32) allowed[num_words - 1] &= (1u << picks->vocab_size % 32) - 1;
}

/* Take what is banned out of `allowed`, unless nothing would be left. Returns whether that is so; `before` is scratch. */
static int ban(const Picks *picks, int64_t row, uint32_t *allowed, uint32_t *before, int64_t num_words) {
  if (picks->offsets == NULL || picks->offsets[row] == picks->offsets[row + 1]) return 0;
  memcpy(before, allowed, (size_t)num_words * sizeof *before);
  for (int64_t i = picks->offsets[row]; i < picks->offsets[row + 1]; i++) {
    if (picks->bias[i] == -INFINITY) allowed[picks->bias_ids[i] / 32] &= ~(1u << picks->bias_ids[i] % 32);
  }
  if (num_set(allowed, num_words) > 0) return 0;
  memcpy(allowed, before, (size_t)num_words * sizeof *before);
  return num_set(before, num_words) > 0;
}

static void find_candidates(const float *logits, const uint32_t *bits, int64_t num_words, int64_t vocab_size, int32_t *ids, Candidates *out) {
  int64_t count = num_set(bits, num_words);
  out->ids = count * FEW_OF <= vocab_size ? ids : NULL;
  out->count = out->ids == NULL ? vocab_size : count;
  if (out->ids == NULL) {
    maskwright_chosen->mask_scores(logits, bits, vocab_size, out->scores);
    return;
  }
  for (int64_t word = 0, place = 0; word < num_words; word++) {
    for (uint32_t left = bits[word]; left != 0; left &= left - 1, place++) {
      ids[place] = (int32_t)(32 * word + __builtin_ctz(left));
      out->scores[place] = bounded(logits[ids[place]]);
    }
  }
}

/* Where the score of a token is; -1 where it may not be drawn. */
static int64_t place_of(const Candidates *all, const uint32_t *bits, int64_t token) {
  if (!is_in(bits, token)) return -1;
  if (all->ids == NULL) return token;
  int64_t low = 0, high = all->count - 1;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (all->ids[middle] < token) low = middle + 1; else high = middle;
  }
  return low;
}

static void add_bias(const Picks *picks, int64_t row, const Candidates *all, const uint32_t *bits) {
  if (picks->offsets == NULL) return;
  for (int64_t i = picks->offsets[row]; i < picks->offsets[row + 1]; i++) {
    int64_t place = place_of(all, bits, picks->bias_ids[i]);
    if (place >= 0 && picks->bias[i] != -INFINITY) all->scores[place] = bounded(all->scores[place] + picks->bias[i]);
  }
}

static void penalise(const Picks *picks, int64_t row, const Candidates *all, const uint32_t *bits) {
  if (picks->seen_offsets == NULL) return;
  const float repetition = picks->repetition[row], presence = picks->presence[row], frequency = picks->frequency[row];
  for (int64_t i = picks->seen_offsets[row]; i < picks->seen_offsets[row + 1]; i++) {
    int64_t place = place_of(all, bits, picks->seen_ids[i]);
    if (place < 0) continue;
    float score = all->scores[place], count = picks->seen_counts[i];
    score = score > 0 ? score / repetition : score * repetition;
    score = score - frequency * count;
    score = score - presence * (count > 0 ? 1.0f : 0.0f);
    all->scores[place] = bounded(score);
  }
}

/* ---- filters */

/* How far below the best score a candidate is, as a number that grows with it. */
static inline uint32_t distance(const Candidates *all, int64_t place) {
  float distance = all->best - all->scores[place];
  uint32_t bits;
  memcpy(&bits, &distance, sizeof bits);
  return bits & 0x7FFFFFFF;
}

/* The least distance within which candidates are `wanted` many, or weigh so much. It is found digit by digit. */
static uint32_t distance_of(const Candidates *all, int by_weight, double wanted) {
  uint32_t found = 0;
  int64_t nearer = 0;
  for (int shift = 20; shift >= 0; shift -= 10) {
    int64_t sums[BINS] = {0};
    const uint32_t last = shift == 20 ? BINS - 1 : 1023;
    for (int64_t i = 0; i < all->count; i++) {
      uint32_t at = distance(all, i);
      if (shift < 20 && at >> (shift + 10) != found) continue;
      sums[at >> shift & last] += by_weight ? (int64_t)(all->weights[i] * all->unit) : 1;
    }
    uint32_t bin = 0;
    while (bin < last && (double)(nearer + sums[bin]) < wanted) nearer += sums[bin++];
    found = found << (shift == 20 ? 11 : 10) | bin;
  }
  return found;
}

static void keep_within(const Candidates *all, uint32_t farthest) {
  for (int64_t i = 0; i < all->count; i++) all->weights[i] = distance(all, i) <= farthest ? all->weights[i] : 0.0f;
}

static void filter(const Picks *picks, int64_t row, const Candidates *all) {
  const int32_t top_k = picks->top_k[row];
  if (top_k > 0 && top_k < all->count) keep_within(all, distance_of(all, 0, top_k));
  if (picks->top_p[row] < 1.0f) {
    double wanted = (double)maskwright_chosen->fixed_sum(all->weights, all->count, all->unit) * (double)picks->top_p[row];
    keep_within(all, distance_of(all, 1, wanted));
  }
  const float least = picks->min_p[row];
  for (int64_t i = 0; least > 0.0f && i < all->count; i++) all->weights[i] = all->weights[i] >= least ? all->weights[i] : 0.0f;
}

/* ---- the draw */

static uint64_t mixed(uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
  return bits ^ bits >> 31;
}

/* In [0, 1): see uniform.py. */
static double uniform(int64_t seed, int64_t position) {
  const uint64_t gamma = 0x9E3779B97F4A7C15u, stream = mixed((uint64_t)seed + gamma);
  return (double)(mixed(stream + ((uint64_t)position + 1) * gamma) >> 11) * 0x1p-53;
}

static int64_t first_best(const Candidates *all) {
  int64_t place = 0;
  while (place + SUM_CHUNK < all->count && maskwright_chosen->largest(all->scores + place, SUM_CHUNK) != all->best) place += SUM_CHUNK;
  while (all->scores[place] != all->best) place++;
  return place;
}

/* The first candidate where the running sum of weights exceeds `random` of all. */
static int64_t drawn(const Candidates *all, double random) {
  int64_t total = maskwright_chosen->fixed_sum(all->weights, all->count, all->unit), sum = 0, begin = 0;
  int64_t target = (int64_t)(random * (double)total);
  if (target > total - 1) target = total - 1; /* the product may round up */
  for (; begin + SUM_CHUNK < all->count; begin += SUM_CHUNK) {
    int64_t more = maskwright_chosen->fixed_sum(all->weights + begin, SUM_CHUNK, all->unit);
    if (sum + more > target) break;
    sum += more;
  }
  int64_t place = begin;
  for (;; place++) {
    sum += (int64_t)(all->weights[place] * all->unit);
    if (sum > target) return place;
  }
}

static int64_t place_drawn(const Picks *picks, int64_t row, const Candidates *all) {
  const float temperature = picks->temperature[row];
  if (!(temperature > 0.0f)) return first_best(all);
  maskwright_chosen->weights_of(all->scores, all->count, all->best, temperature, all->weights);
  filter(picks, row, all);
  return drawn(all, uniform(picks->seed[row], picks->position[row]));
}

/* ---- what the model thought */

/* Whether a token is less probable than another one, of two that have these scores. */
static inline int is_below(const float *scores, int64_t token, int64_t other) {
  return scores[token] < scores[other] || (scores[token] == scores[other] && token > other);
}

/* Put `token` at `place` of a heap of tokens, the least probable of which stands first, or as far below as it belongs. */
static void sift(const float *scores, int64_t *heap, int64_t count, int64_t place, int64_t token) {
  for (int64_t child; (child = 2 * place + 1) < count; place = child) {
    if (child + 1 < count && is_below(scores, heap[child + 1], heap[child])) child++;
    if (!is_below(scores, heap[child], token)) break;
    heap[place] = heap[child];
  }
  heap[place] = token;
}

/* The `count` most probable tokens, the best first: a heap that is then sorted. `scores` is scratch, [vocab_size]. */
static void find_top(const Picks *picks, const float *logits, const uint32_t *all, float *scores, int64_t *top, int64_t count) {
  maskwright_chosen->mask_scores(logits, all, picks->vocab_size, scores);
  for (int64_t i = 0; i < count; i++) top[i] = i;
  for (int64_t place = count / 2 - 1; place >= 0; place--) sift(scores, top, count, place, top[place]);
  for (int64_t begin = count, end; begin < picks->vocab_size; begin = end) {
    end = begin + TOP_CHUNK < picks->vocab_size ? begin + TOP_CHUNK : picks->vocab_size;
    if (maskwright_chosen->largest(scores + begin, end - begin) <= scores[top[0]]) continue;
    for (int64_t token = begin; token < end; token++) {
      if (scores[token] > scores[top[0]]) sift(scores, top, count, 0, token);
    }
  }
  for (int64_t left = count - 1; left > 0; left--) {
    int64_t token = top[left];
    top[left] = top[0];
    sift(scores, top, left, 0, token);
  }
}

/* `all` and `scores` are scratch. */
static void tell(const Picks *picks, int64_t row, const float *logits, const uint32_t *allowed, uint32_t *all, float *scores, int64_t num_words) {
  Picked *picked = picks->picked + row;
  const int64_t count = picks->vocab_size, token = picked->token;
  memset(all, 0xFF, (size_t)num_words * sizeof *all);
  if (count % 32) all[num_words - 1] = (1u << count % 32) - 1;
  float most = maskwright_chosen->most_of(logits, all, count);
  double log_total = most + log(maskwright_chosen->sum_of(logits, all, count, most)), kept = 1.0;
  if (picked->num_allowed < count) {
    most = maskwright_chosen->most_of(logits, allowed, count);
    kept = picked->num_allowed == 0 ? 0.0 : exp(most + log(maskwright_chosen->sum_of(logits, allowed, count, most)) - log_total);
  }
  picked->kept_mass = kept;
  picked->logprob = token < 0 ? NAN : (float)((double)bounded(logits[token]) - log_total);
  if (picks->num_top == 0) return;
  int64_t *top = picks->top_token + row * picks->num_top;
  find_top(picks, logits, all, scores, top, picks->num_top);
  for (int64_t i = 0; i < picks->num_top; i++) picks->top_logprob[row * picks->num_top + i] = (float)((double)scores[top[i]] - log_total);
}

typedef struct {
  uint32_t *allowed, *drawable, *scratch; /* [num_words] each */
  int32_t *ids; /* [vocab_size], as what is next */
  float *scores, *weights;
} Room;

/* Of those that are `drawable`; -1 where none is. */
static int64_t token_drawn(const Picks *picks, int64_t row, const float *logits, const Room *room, int64_t num_words) {
  Candidates all = {.scores = room->scores, .weights = room->weights, .unit = ldexpf(1.0f, __builtin_clzll((uint64_t)picks->vocab_size) - 2)};
  find_candidates(logits, room->drawable, num_words, picks->vocab_size, room->ids, &all);
  add_bias(picks, row, &all, room->drawable);
  penalise(picks, row, &all, room->drawable);
  all.best = maskwright_chosen->largest(all.scores, all.count);
  int64_t place = all.best == -INFINITY ? -1 : place_drawn(picks, row, &all);
  return place < 0 || all.ids == NULL ? place : all.ids[place];
}

static void pick_row(const Picks *picks, int64_t row, const Room *room, int64_t num_words) {
  Picked *picked = picks->picked + row;
  const float *logits = picks->logits + row * picks->stride;
  set_allowed(picks, row, room->allowed, num_words);
  memcpy(room->drawable, room->allowed, (size_t)num_words * sizeof *room->allowed);
  picked->is_number = (uint8_t)!maskwright_chosen->has_nan(logits, picks->vocab_size);
  picked->num_allowed = num_set(room->allowed, num_words);
  picked->bans_overridden = (uint8_t)ban(picks, row, room->drawable, room->scratch, num_words);
  const int is_drawn = picks->given != NULL && picks->given[row] != DRAW;
  picked->token = is_drawn ? picks->given[row] : token_drawn(picks, row, logits, room, num_words);
  if (picks->is_told) tell(picks, row, logits, room->allowed, room->scratch, room->scores, num_words);
  else picked->logprob = NAN, picked->kept_mass = NAN;
}

typedef struct {
  const Picks *picks;
  atomic_int has_failed; /* some thread had no memory */
} Task;

static void pick_rows(void *context, int64_t begin, int64_t end) {
  static _Thread_local void *memory;
  static _Thread_local size_t size;
  Task *task = context;
  int64_t vocab_size = task->picks->vocab_size, num_words = (vocab_size + 31) / 32;
  uint32_t *words = maskwright_kept(&memory, &size, (size_t)(3 * num_words + 3 * vocab_size) * sizeof *words);
  if (words == NULL) {
    atomic_store(&task->has_failed, 1);
    return;
  }
  float *scores = (float *)(words + 3 * num_words);
  Room room = {words, words + num_words, words + 2 * num_words, (int32_t *)(scores + 2 * vocab_size), scores, scores + vocab_size};
  for (int64_t row = begin; row < end; row++) pick_row(task->picks, row, &room, num_words);
}

/* Returns 0, or -1 when there is no memory. */
int maskwright_pick(const Picks *picks, int num_threads) {
  Task task = {picks, 0};
  run_in_parallel(pick_rows, &task, picks->num_rows, 1, num_threads);
  return atomic_load(&task.has_failed) ? -1 : 0;
}

/* is_number [num_rows]: whether none of the first `vocab_size` logits of a row [num_rows, stride] is NaN. */
void maskwright_are_numbers(const float *logits, int64_t num_rows, int64_t stride, int64_t vocab_size, uint8_t *is_number) {
  for (int64_t row = 0; row < num_rows; row++) is_number[row] = (uint8_t)!maskwright_chosen->has_nan(logits + row * stride, vocab_size);
}
