/* What the loops of the package are to C: a table of entry points, written when they are compiled (emission.py). */

#include <stdint.h>

#define MAX_ARGUMENTS 12
#define MAX_WORDS 48 /* of all arguments: a number is one, an array its address and its shape */
#define MAX_RESULTS 8
#define MAX_LEVELS 3

/* 0, or else what was raised is not told. */
typedef int32_t (*Function)(const int64_t *arguments, int64_t *results);

typedef struct {
  char kind;       /* 'n' a number of 64 bits, 't' a truth value; of an array that of its items as NumPy has it: b, i, u, f */
  char size;       /* bytes of an item */
  char dimensions;
  char is_const;   /* whether the array is only read */
} Argument;

typedef struct {
  const char *name;
  int num_arguments;
  Argument arguments[MAX_ARGUMENTS];
  int is_tuple;
  const char *results; /* a letter each: 'n' or 't' */
  Function levels[MAX_LEVELS];
} Declaration;

extern const char *const LEVELS[]; /* kinds of processors, those with more instructions last; then NULL */
extern const Declaration DECLARATIONS[];
extern const int NUM_DECLARATIONS;
