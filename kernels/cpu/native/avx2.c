#include "products.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif

#include "simd_avx2.h"
#include "kernel.h"
#include "between.h"
#include "attention.h"
#include "pick.h"

const InstructionSet maskwright_avx2 = {LANES, quantize, round_to_int8, round_to_float8, read_row, multiply, multiply_floats, add_and_normalize, gated, turn_head, attend, join, most_of, sum_of, mask_scores, largest, weights_of, fixed_sum, has_nan};

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
