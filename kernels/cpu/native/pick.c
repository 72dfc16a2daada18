/* The most probable tokens, and what the model thought of them: `kernels/sampler/reference.py` for rows that are not drawn at random. */

#include "products.h"

#include <math.h>
#include <string.h>

#define SOME 1024 /* tokens among which the best one is looked for at a time */

typedef struct {
  const float *logits;      /* [num_rows, stride] */
  const uint32_t *masks;    /* [pool, num_words], or NULL: no row is constrained */
  const int64_t *mask_of;   /* [num_rows]: row of the pool, -1 unconstrained, -2 missing */
  const int64_t *offsets, *bias_ids; /* [num_rows + 1], [entries], or NULL: as TokenValues */
  const float *bias;        /* [entries]; -infinity bans the token */
  int64_t *token;           /* [num_rows]: -1 where nothing is allowed */
  float *logprob;
  double *kept_mass;
  int64_t *num_allowed;
  uint8_t *bans_overridden;
  int64_t num_rows, stride, vocab_size;
} Picks;

typedef struct {
  int64_t token; /* -1: none */
  float score;
} Best;

static float bounded(float x) { return x != x || x < -3.402823466e38f ? -3.402823466e38f : x > 3.402823466e38f ? 3.402823466e38f : x; }

static int is_in(const uint32_t *bits, int64_t token) { return bits[token / 32] >> token % 32 & 1; }

/* The best token whose bit is set, the first of equals. */
static Best best_of(const float *logits, const uint32_t *bits, int64_t count) {
  float most = maskwright_chosen->most_of(logits, bits, count);
  if (most == -INFINITY) return (Best){-1, most};
  int64_t token = 0, some = SOME < count ? SOME : count;
  while (maskwright_chosen->most_of(logits + token, bits + token / 32, some) != most) {
    token += some;
    some = SOME < count - token ? SOME : count - token;
  }
  while (bounded(logits[token]) != most || !is_in(bits, token)) token++;
  return (Best){token, most};
}

/* The best token of `allowed` once biases are added; `rest` is scratch: those without a bias. `is_banning`: -infinity counts. */
static Best best_biased(const Picks *picks, int64_t row, const float *logits, const uint32_t *allowed, uint32_t *rest, int64_t num_words, int is_banning) {
  int64_t begin = picks->offsets == NULL ? 0 : picks->offsets[row], end = picks->offsets == NULL ? 0 : picks->offsets[row + 1];
  memcpy(rest, allowed, (size_t)num_words * sizeof *rest);
  for (int64_t i = begin; i < end; i++) rest[picks->bias_ids[i] / 32] &= ~(1u << picks->bias_ids[i] % 32);
  Best best = best_of(logits, rest, picks->vocab_size);
  for (int64_t i = begin; i < end; i++) {
    int64_t token = picks->bias_ids[i];
    int is_banned = picks->bias[i] == -INFINITY;
    if (!is_in(allowed, token) || (is_banned && is_banning)) continue;
    float score = bounded(bounded(logits[token]) + (is_banned ? 0.0f : picks->bias[i]));
    if (best.token < 0 || score > best.score || (score == best.score && token < best.token)) best = (Best){token, score};
  }
  return best;
}

static void pick_row(const Picks *picks, int64_t row, uint32_t *all, uint32_t *rest, int64_t num_words) {
  const float *logits = picks->logits + row * picks->stride;
  const int64_t place = picks->masks == NULL ? -1 : picks->mask_of[row], count = picks->vocab_size;
  memset(all, 0xFF, (size_t)num_words * sizeof *all);
  if (count % 32) all[num_words - 1] = (1u << count % 32) - 1;
  float most = maskwright_chosen->most_of(logits, all, count);
  double log_total = most + log(maskwright_chosen->sum_of(logits, all, count, most)), kept = 1.0;
  if (place == -2) memset(all, 0, (size_t)num_words * sizeof *all);
  if (place >= 0) {
    for (int64_t i = 0; i < num_words; i++) all[i] &= picks->masks[place * num_words + i];
  }
  int64_t num_allowed = 0;
  for (int64_t i = 0; i < num_words; i++) num_allowed += __builtin_popcount(all[i]);
  Best best = best_biased(picks, row, logits, all, rest, num_words, 1);
  picks->bans_overridden[row] = best.token < 0 && num_allowed > 0;
  if (best.token < 0 && num_allowed > 0) best = best_biased(picks, row, logits, all, rest, num_words, 0);
  if (num_allowed < count) {
    float most_allowed = maskwright_chosen->most_of(logits, all, count);
    kept = num_allowed == 0 ? 0.0 : exp(most_allowed + log(maskwright_chosen->sum_of(logits, all, count, most_allowed)) - log_total);
  }
  picks->token[row] = best.token, picks->num_allowed[row] = num_allowed, picks->kept_mass[row] = kept;
  picks->logprob[row] = best.token < 0 ? NAN : (float)((double)bounded(logits[best.token]) - log_total);
}

/* Returns 0, or -1 when there is no memory. */
int maskwright_pick(const Picks *picks) {
  static _Thread_local void *memory;
  static _Thread_local size_t size;
  int64_t num_words = (picks->vocab_size + 31) / 32;
  uint32_t *all = maskwright_kept(&memory, &size, (size_t)(2 * num_words) * sizeof *all);
  if (all == NULL) return -1;
  for (int64_t row = 0; row < picks->num_rows; row++) pick_row(picks, row, all, all + num_words, num_words);
  return 0;
}
