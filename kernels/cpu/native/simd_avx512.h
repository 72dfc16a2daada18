/* AVX-512 with VNNI: sixteen rows at a time. */
#define LANES 16
#define SIGNED_AS 0x80808080 /* what turns signed bytes into those that DOT takes */
#define SIGNED_OFFSET 128

typedef int32_t Ints __attribute__((vector_size(64)));
typedef float Floats __attribute__((vector_size(64)));

INLINE Ints dot(Ints sum, Ints weights, Ints x) { return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)weights, (__m512i)x); }
#define dot_signed dot
#define dot_bytes dot
INLINE Floats fused(Floats a, Floats b, Floats c) { return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
INLINE Floats floats_of(Ints a) { return (Floats)_mm512_cvtepi32_ps((__m512i)a); }
INLINE Ints all_ints(int32_t a) { return (Ints)_mm512_set1_epi32(a); }
INLINE Floats all_floats(float a) { return (Floats)_mm512_set1_ps(a); }

/* The lowest four bits of each lane, one in each byte. */
INLINE Ints four_bits_apart(Ints bits) {
  const __m512i apart = _mm512_setr_epi32(0x00000000, 0x00000001, 0x00000100, 0x00000101, 0x00010000, 0x00010001, 0x00010100, 0x00010101, 0x01000000,
                                          0x01000001, 0x01000100, 0x01000101, 0x01010000, 0x01010001, 0x01010100, 0x01010101);
  return (Ints)_mm512_permutexvar_epi32((__m512i)bits, apart);
}

INLINE Ints looked_up(const int8_t *table, Ints nibbles) {
  __m512i whole = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
  return (Ints)_mm512_shuffle_epi8(whole, (__m512i)nibbles);
}

INLINE __m512i four_rows(const uint8_t *p, Stride stride, int first) {
  __m512i rows = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)ROW(first)));
  rows = _mm512_inserti32x4(rows, _mm_loadu_si128((const __m128i *)ROW(first + 4)), 1);
  rows = _mm512_inserti32x4(rows, _mm_loadu_si128((const __m128i *)ROW(first + 8)), 2);
  return _mm512_inserti32x4(rows, _mm_loadu_si128((const __m128i *)ROW(first + 12)), 3);
}

INLINE void transposed(__m512i a, __m512i b, __m512i c, __m512i d, Ints *out) {
  __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
  __m512i ab_high = _mm512_unpackhi_epi32(a, b), cd_high = _mm512_unpackhi_epi32(c, d);
  out[0] = (Ints)_mm512_unpacklo_epi64(ab, cd);
  out[1] = (Ints)_mm512_unpackhi_epi64(ab, cd);
  out[2] = (Ints)_mm512_unpacklo_epi64(ab_high, cd_high);
  out[3] = (Ints)_mm512_unpackhi_epi64(ab_high, cd_high);
}

/* Sixteen bytes of each row: out[i] has the i-th four of all. */
INLINE void columns(const uint8_t *p, Stride stride, Ints *out) {
  transposed(four_rows(p, stride, 0), four_rows(p, stride, 1), four_rows(p, stride, 2), four_rows(p, stride, 3), out);
}

/* The same of bytes in another order, 0 where that is 128. */
INLINE void ordered_columns(const uint8_t *p, Stride stride, const uint8_t *order, Ints *out) {
  const __m512i places = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)order));
  __m512i rows[4];
  UNROLLED
  for (int i = 0; i < 4; i++) rows[i] = _mm512_shuffle_epi8(four_rows(p, stride, i), places);
  transposed(rows[0], rows[1], rows[2], rows[3], out);
}

INLINE Floats from_halves(Ints low_halves) {
  return (Floats)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)low_halves));
}

#define HALF(i) (*(const Unaligned16 *)ROW(i))

/* The float16 at p in each row. */
INLINE Floats halves(const uint8_t *p, Stride stride) {
  return (Floats)_mm512_cvtph_ps(_mm256_set_epi16(HALF(15), HALF(14), HALF(13), HALF(12), HALF(11), HALF(10), HALF(9), HALF(8),
                                                  HALF(7), HALF(6), HALF(5), HALF(4), HALF(3), HALF(2), HALF(1), HALF(0)));
}

/* The 16 bits at p in each row. */
INLINE Ints shorts(const uint8_t *p, Stride stride) {
  return (Ints)_mm512_cvtepu16_epi32(_mm256_set_epi16(HALF(15), HALF(14), HALF(13), HALF(12), HALF(11), HALF(10), HALF(9), HALF(8),
                                                      HALF(7), HALF(6), HALF(5), HALF(4), HALF(3), HALF(2), HALF(1), HALF(0)));
}

INLINE Ints bytes(const uint8_t *p, Stride stride) {
  return (Ints)_mm512_cvtepu8_epi32(_mm_set_epi8(*ROW(15), *ROW(14), *ROW(13), *ROW(12), *ROW(11), *ROW(10), *ROW(9), *ROW(8),
                                                 *ROW(7), *ROW(6), *ROW(5), *ROW(4), *ROW(3), *ROW(2), *ROW(1), *ROW(0)));
}

INLINE Ints words(const uint8_t *p, Stride stride) {
#define WORD(i) (*(const Unaligned32 *)ROW(i))
  return (Ints)_mm512_set_epi32(WORD(15), WORD(14), WORD(13), WORD(12), WORD(11), WORD(10), WORD(9), WORD(8),
                                WORD(7), WORD(6), WORD(5), WORD(4), WORD(3), WORD(2), WORD(1), WORD(0));
}

/* Sixteen numbers of 16 bits. */
INLINE Floats converted_halves(const uint8_t *p) { return (Floats)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
INLINE Ints extended(const uint8_t *p) { return (Ints)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)); }

/* Sixteen numbers of e4m3, each divided by 256: as float16, whose exponents and fractions have the same places. */
INLINE Floats float8(const uint8_t *p) {
  __m256i codes = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)), most = _mm256_set1_epi16(127);
  __m256i is_none = _mm256_cmpeq_epi16(_mm256_and_si256(codes, most), most);
  __m256i numbers = _mm256_and_si256(_mm256_slli_epi16(codes, 7), _mm256_set1_epi16((int16_t)0xBF80));
  return (Floats)_mm512_cvtph_ps(_mm256_or_si256(numbers, is_none));
}

/* Lanes i and i + 8 are added, then i and i + 4, i and i + 2, 0 and 1. */
INLINE float lanes_added(Floats a) {
  __m256 eight = _mm256_add_ps(_mm512_castps512_ps256((__m512)a), _mm512_extractf32x8_ps((__m512)a, 1));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* Lane i has what `lanes_added` makes of a[i]. */
INLINE Floats each_lanes_added(const Floats *a) {
  __m512 eight[8], four[4], two[2];
  for (int i = 0; i < 8; i++) {
    __m512 x = (__m512)a[i], y = (__m512)a[i + 8];
    eight[i] = _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xEE));
  }
  for (int i = 0; i < 4; i++) four[i] = _mm512_add_ps(_mm512_shuffle_f32x4(eight[i], eight[i + 4], 0x88), _mm512_shuffle_f32x4(eight[i], eight[i + 4], 0xDD));
  for (int i = 0; i < 2; i++) {
    __m512d x = _mm512_castps_pd(four[i]), y = _mm512_castps_pd(four[i + 2]);
    two[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
  }
  __m512 one = _mm512_add_ps(_mm512_shuffle_ps(two[0], two[1], 0x88), _mm512_shuffle_ps(two[0], two[1], 0xDD));
  return (Floats)_mm512_permutexvar_ps(_mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15), one);
}
