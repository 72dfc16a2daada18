/* AVX2 with FMA and F16C: eight rows at a time. */
#define LANES 8
#define SIGNED_AS 0
#define SIGNED_OFFSET 0

typedef int32_t Ints __attribute__((vector_size(32)));
typedef float Floats __attribute__((vector_size(32)));

/* Unsigned weights below 128 only: two products fit into 16 bits. */
INLINE Ints dot(Ints sum, Ints weights, Ints x) {
  __m256i pairs = _mm256_maddubs_epi16((__m256i)weights, (__m256i)x);
  return sum + (Ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
INLINE Ints dot_signed(Ints sum, Ints weights, Ints x) {
  return dot(sum, (Ints)_mm256_abs_epi8((__m256i)weights), (Ints)_mm256_sign_epi8((__m256i)x, (__m256i)weights));
}
/* Any bytes: products of 16 bits, of even and of odd ones. */
INLINE Ints dot_bytes(Ints sum, Ints weights, Ints x) {
  __m256i even = _mm256_madd_epi16(_mm256_srai_epi16(_mm256_slli_epi16((__m256i)weights, 8), 8), _mm256_srai_epi16(_mm256_slli_epi16((__m256i)x, 8), 8));
  __m256i odd = _mm256_madd_epi16(_mm256_srai_epi16((__m256i)weights, 8), _mm256_srai_epi16((__m256i)x, 8));
  return sum + (Ints)even + (Ints)odd;
}
INLINE Floats fused(Floats a, Floats b, Floats c) { return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
INLINE Floats floats_of(Ints a) { return (Floats)_mm256_cvtepi32_ps((__m256i)a); }
INLINE Ints all_ints(int32_t a) { return (Ints)_mm256_set1_epi32(a); }
INLINE Floats all_floats(float a) { return (Floats)_mm256_set1_ps(a); }

/* The lowest four bits of each lane, one in each byte. */
INLINE Ints four_bits_apart(Ints bits) { return ((bits & all_ints(15)) * all_ints(0x00204081)) & all_ints(0x01010101); }

INLINE Ints looked_up(const int8_t *table, Ints nibbles) {
  __m256i whole = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
  return (Ints)_mm256_shuffle_epi8(whole, (__m256i)nibbles);
}

INLINE __m256i two_rows(const uint8_t *p, Stride stride, int first) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)ROW(first))), _mm_loadu_si128((const __m128i *)ROW(first + 4)), 1);
}

INLINE void transposed(__m256i a, __m256i b, __m256i c, __m256i d, Ints *out) {
  __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
  __m256i ab_high = _mm256_unpackhi_epi32(a, b), cd_high = _mm256_unpackhi_epi32(c, d);
  out[0] = (Ints)_mm256_unpacklo_epi64(ab, cd);
  out[1] = (Ints)_mm256_unpackhi_epi64(ab, cd);
  out[2] = (Ints)_mm256_unpacklo_epi64(ab_high, cd_high);
  out[3] = (Ints)_mm256_unpackhi_epi64(ab_high, cd_high);
}

/* Sixteen bytes of each row: out[i] has the i-th four of all. */
INLINE void columns(const uint8_t *p, Stride stride, Ints *out) {
  transposed(two_rows(p, stride, 0), two_rows(p, stride, 1), two_rows(p, stride, 2), two_rows(p, stride, 3), out);
}

/* The same of bytes in another order, 0 where that is 128. */
INLINE void ordered_columns(const uint8_t *p, Stride stride, const uint8_t *order, Ints *out) {
  const __m256i places = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)order));
  __m256i rows[4];
  UNROLLED
  for (int i = 0; i < 4; i++) rows[i] = _mm256_shuffle_epi8(two_rows(p, stride, i), places);
  transposed(rows[0], rows[1], rows[2], rows[3], out);
}

INLINE Floats from_halves(Ints low_halves) {
  __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)low_halves, (__m256i)low_halves), 8);
  return (Floats)_mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}

#define HALF(i) (*(const Unaligned16 *)ROW(i))
#define WORD(i) (*(const Unaligned32 *)ROW(i))

INLINE Floats halves(const uint8_t *p, Stride stride) {
  return (Floats)_mm256_cvtph_ps(_mm_set_epi16(HALF(7), HALF(6), HALF(5), HALF(4), HALF(3), HALF(2), HALF(1), HALF(0)));
}

INLINE Ints shorts(const uint8_t *p, Stride stride) {
  return (Ints)_mm256_cvtepu16_epi32(_mm_set_epi16(HALF(7), HALF(6), HALF(5), HALF(4), HALF(3), HALF(2), HALF(1), HALF(0)));
}

INLINE Ints bytes(const uint8_t *p, Stride stride) {
  return (Ints)_mm256_set_epi32(*ROW(7), *ROW(6), *ROW(5), *ROW(4), *ROW(3), *ROW(2), *ROW(1), *ROW(0));
}

INLINE Ints words(const uint8_t *p, Stride stride) {
  return (Ints)_mm256_set_epi32(WORD(7), WORD(6), WORD(5), WORD(4), WORD(3), WORD(2), WORD(1), WORD(0));
}

/* Eight numbers of 16 bits. */
INLINE Floats converted_halves(const uint8_t *p) { return (Floats)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE Ints extended(const uint8_t *p) { return (Ints)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)); }

/* Eight numbers of e4m3, each divided by 256: as float16, whose exponents and fractions have the same places. */
INLINE Floats float8(const uint8_t *p) {
  __m128i codes = _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)p)), most = _mm_set1_epi16(127);
  __m128i is_none = _mm_cmpeq_epi16(_mm_and_si128(codes, most), most);
  __m128i numbers = _mm_and_si128(_mm_slli_epi16(codes, 7), _mm_set1_epi16((int16_t)0xBF80));
  return (Floats)_mm256_cvtph_ps(_mm_or_si128(numbers, is_none));
}

/* Lanes i and i + 4 are added, then i and i + 2, 0 and 1. */
INLINE float lanes_added(Floats a) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128((__m256)a), _mm256_extractf128_ps((__m256)a, 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Lane i has what `lanes_added` makes of a[i]. */
INLINE Floats each_lanes_added(const Floats *a) {
  __m256 four[4], two[2];
  for (int i = 0; i < 4; i++) {
    __m256 x = (__m256)a[i], y = (__m256)a[i + 4];
    four[i] = _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
  }
  for (int i = 0; i < 2; i++) {
    __m256d x = _mm256_castps_pd(four[i]), y = _mm256_castps_pd(four[i + 2]);
    two[i] = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)), _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)));
  }
  __m256 one = _mm256_add_ps(_mm256_shuffle_ps(two[0], two[1], 0x88), _mm256_shuffle_ps(two[0], two[1], 0xDD));
  return (Floats)_mm256_permutevar8x32_ps(one, _mm256_setr_epi32(0, 2, 1, 3, 4, 6, 5, 7));
}
