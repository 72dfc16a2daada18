/* Entry points as Python objects: arguments are checked, the lock of the interpreter is released, and machine code is called.

   A call costs what it does through Numba's dispatcher, or less. Nothing is converted: an array has the type that is declared,
   contiguous and aligned, or is refused. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "entry_points.h"

/* -- memory of machine code: Numba's counted blocks, of which it reads the first five fields --------------------------- */

typedef struct {
  size_t references;
  void (*destroy)(void *data, size_t size, void *info);
  void *info;
  void *data;
  size_t size;
} Block;

static _Thread_local int is_out_of_memory;

void *NRT_MemInfo_alloc_aligned(size_t size, unsigned align) {
  size_t room = sizeof(Block) + align + size;
  Block *block = room < size ? NULL : malloc(room);
  if (block == NULL) {
    is_out_of_memory = 1;
    return NULL;
  }
  uintptr_t begin = (uintptr_t)(block + 1);
  if (align > 1) begin = (begin + align - 1) / align * align;
  *block = (Block){1, NULL, NULL, (void *)begin, size};
  return block;
}

void *NRT_MemInfo_alloc(size_t size) { return NRT_MemInfo_alloc_aligned(size, 16); }

void *NRT_Allocate(size_t size) {
  void *data = malloc(size > 0 ? size : 1);
  if (data == NULL) is_out_of_memory = 1;
  return data;
}

void NRT_Free(void *data) { free(data); }

void NRT_MemInfo_call_dtor(Block *block) { free(block); }

/* -- processors ---------------------------------------------------------------------------------------------------------- */

static int has_level(const char *level) {
#if defined(__x86_64__)
  unsigned a, b, c, d, extended = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  unsigned first = c;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) extended = c;
  __builtin_cpu_init();
  int v2 = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
           __builtin_cpu_supports("popcnt") && (first >> 13 & 1) && (extended & 1); /* cmpxchg16b, lahf */
  int v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && (first >> 22 & 1) && (first >> 29 & 1) && (extended >> 5 & 1); /* movbe, f16c, lzcnt */
  if (strcmp(level, "x86-64-v2") == 0) return v2;
  if (strcmp(level, "x86-64-v3") == 0) return v3;
  return strcmp(level, "x86-64-v4") == 0 && v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  (void)level;
  return 1;
#endif
}

/* -- calls ----------------------------------------------------------------------------------------------------------------- */

typedef struct {
  PyObject_HEAD
  vectorcallfunc call;
  const Declaration *declared;
  Function function;
} EntryPoint;

static int take_number(PyObject *value, int64_t *word) {
  if (PyLong_Check(value)) {
    *word = PyLong_AsLongLong(value);
  } else {
    PyObject *number = PyNumber_Index(value);
    if (number == NULL) return -1;
    *word = PyLong_AsLongLong(number);
    Py_DECREF(number);
  }
  return *word == -1 && PyErr_Occurred() ? -1 : 0;
}

/* The words of an array; 0 when it is not what is declared. */
static int take_array(PyObject *value, const Argument *declared, int64_t *words) {
  if (!PyArray_Check(value)) return 0;
  PyArrayObject *array = (PyArrayObject *)value;
  int flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (declared->is_const ? 0 : NPY_ARRAY_WRITEABLE);
  if (!PyArray_CHKFLAGS(array, flags) || PyArray_NDIM(array) != declared->dimensions || !PyArray_ISNOTSWAPPED(array)) return 0;
  if (PyArray_DESCR(array)->kind != declared->kind || PyArray_ITEMSIZE(array) != declared->size) return 0;
  words[0] = (int64_t)(intptr_t)PyArray_DATA(array);
  for (int axis = 0; axis < declared->dimensions; axis++) words[1 + axis] = PyArray_DIM(array, axis);
  return 1 + declared->dimensions;
}

static PyObject *given(char kind, int64_t word) { return kind == 't' ? PyBool_FromLong(word != 0) : PyLong_FromLongLong(word); }

static PyObject *call(PyObject *self, PyObject *const *values, size_t flags, PyObject *names) {
  const EntryPoint *entry = (const EntryPoint *)self;
  const Declaration *declared = entry->declared;
  if (PyVectorcall_NARGS(flags) != declared->num_arguments || (names != NULL && PyTuple_GET_SIZE(names) > 0))
    return PyErr_Format(PyExc_TypeError, "%s takes %d arguments by their places", declared->name, declared->num_arguments);
  int64_t words[MAX_WORDS], results[MAX_RESULTS];
  int64_t *word = words;
  for (int i = 0; i < declared->num_arguments; i++) {
    const Argument *argument = &declared->arguments[i];
    if (argument->kind == 'n') {
      if (take_number(values[i], word) < 0) return NULL;
      word++;
    } else if (argument->kind == 't') {
      int truth = PyObject_IsTrue(values[i]);
      if (truth < 0) return NULL;
      *word++ = truth;
    } else {
      int count = take_array(values[i], argument, word);
      if (count == 0)
        return PyErr_Format(PyExc_TypeError, "%s: argument %d has to be a contiguous%s array of %d dimensions, of %c%d",
                            declared->name, i, argument->is_const ? "" : " writable", argument->dimensions, argument->kind,
                            argument->size);
      word += count;
    }
  }
  int32_t status;
  Function function = entry->function;
  Py_BEGIN_ALLOW_THREADS
  is_out_of_memory = 0;
  status = function(words, results);
  if (status != 0) status = is_out_of_memory ? 2 : 1;
  Py_END_ALLOW_THREADS
  if (status == 2) return PyErr_NoMemory();
  if (status != 0) return PyErr_Format(PyExc_RuntimeError, "%s raised an error in machine code", declared->name);
  if (!declared->is_tuple) {
    if (declared->results[0] == '\0') Py_RETURN_NONE;
    return given(declared->results[0], results[0]);
  }
  Py_ssize_t size = (Py_ssize_t)strlen(declared->results);
  PyObject *tuple = PyTuple_New(size);
  for (Py_ssize_t i = 0; tuple != NULL && i < size; i++) {
    PyObject *result = given(declared->results[i], results[i]);
    if (result == NULL) {
      Py_CLEAR(tuple);
    } else {
      PyTuple_SET_ITEM(tuple, i, result);
    }
  }
  return tuple;
}

/* -- many calls, by several threads ---------------------------------------------------------------------------------------- */

#define MAX_THREADS 64

/* Calls in groups: those of one group come one after the other, in one thread; each thread takes the next group that nobody has.
   Who asks for them waits until all are made, not for threads that have not begun by then: a processor may be busy elsewhere. So
   this is freed by whoever holds it last. */
typedef struct {
  Function function;
  const int64_t *words; /* [calls, num_words] */
  int64_t *results;     /* [calls, num_results] */
  const int64_t *starts; /* [groups + 1] the first call of each group, and the end of the last */
  int64_t num_words, num_results, num_groups;
  atomic_llong next_group, groups_left;
  atomic_int status, holders;
  pthread_mutex_t lock;
  pthread_cond_t all_made;
} Calls;

static void make_calls(Calls *calls) {
  for (;;) {
    int64_t group = atomic_fetch_add(&calls->next_group, 1);
    if (group >= calls->num_groups) return;
    for (int64_t i = calls->starts[group]; i < calls->starts[group + 1]; i++) {
      is_out_of_memory = 0;
      int32_t status = calls->function(calls->words + i * calls->num_words, calls->results + i * calls->num_results);
      if (status != 0) atomic_store(&calls->status, is_out_of_memory ? 2 : 1);
    }
    if (atomic_fetch_sub(&calls->groups_left, 1) == 1) {
      pthread_mutex_lock(&calls->lock);
      pthread_cond_signal(&calls->all_made);
      pthread_mutex_unlock(&calls->lock);
    }
  }
}

static void let_go(Calls *calls) {
  if (atomic_fetch_sub(&calls->holders, 1) > 1) return;
  pthread_cond_destroy(&calls->all_made);
  pthread_mutex_destroy(&calls->lock);
  free(calls);
}

static void *help(void *calls) {
  make_calls(calls);
  let_go(calls);
  return NULL;
}

/* 0, or what went wrong in one of the calls: 2 for want of memory, 1 for anything else. */
static int make_all(Calls *calls, int64_t num_threads) {
  pthread_attr_t detached;
  if (num_threads > 1 && pthread_attr_init(&detached) != 0) num_threads = 1;
  if (num_threads > 1) pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  for (int64_t i = 1; i < num_threads; i++) {
    pthread_t other;
    atomic_fetch_add(&calls->holders, 1);
    if (pthread_create(&other, &detached, help, calls) != 0) { /* then there are fewer */
      atomic_fetch_sub(&calls->holders, 1);
      break;
    }
  }
  if (num_threads > 1) pthread_attr_destroy(&detached);
  make_calls(calls);
  pthread_mutex_lock(&calls->lock);
  while (atomic_load(&calls->groups_left) > 0) pthread_cond_wait(&calls->all_made, &calls->lock);
  pthread_mutex_unlock(&calls->lock);
  int status = atomic_load(&calls->status);
  let_go(calls);
  return status;
}

/* The numbers of an array int64 [rows, columns], or [rows] for 0 columns; NULL when it is not that. */
static int64_t *numbers_in(PyObject *value, npy_intp columns, int is_written) {
  if (!PyArray_Check(value)) return NULL;
  PyArrayObject *array = (PyArrayObject *)value;
  int flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (is_written ? NPY_ARRAY_WRITEABLE : 0);
  if (!PyArray_CHKFLAGS(array, flags) || !PyArray_ISNOTSWAPPED(array) || PyArray_NDIM(array) != (columns > 0 ? 2 : 1)) return NULL;
  if (PyArray_DESCR(array)->kind != 'i' || PyArray_ITEMSIZE(array) != 8) return NULL;
  return columns == 0 || PyArray_DIM(array, 1) == columns ? PyArray_DATA(array) : NULL;
}

static PyObject *each(PyObject *self, PyObject *const *values, Py_ssize_t count) {
  const EntryPoint *entry = (const EntryPoint *)self;
  const Declaration *declared = entry->declared;
  for (int i = 0; i < declared->num_arguments; i++)
    if (declared->arguments[i].kind != 'n')
      return PyErr_Format(PyExc_TypeError, "%s takes more than numbers, so each call is made by itself", declared->name);
  if (count != 4) return PyErr_Format(PyExc_TypeError, "each takes words, results, starts and a number of threads");
  int64_t num_words = declared->num_arguments, num_results = (int64_t)strlen(declared->results), num_threads;
  const int64_t *words = numbers_in(values[0], num_words, 0), *starts = numbers_in(values[2], 0, 0);
  int64_t *results = numbers_in(values[1], num_results, 1);
  if (take_number(values[3], &num_threads) < 0) return NULL;
  if (words == NULL || results == NULL || starts == NULL)
    return PyErr_Format(PyExc_TypeError, "each takes arrays int64 [calls, %d], [calls, %d] and [groups + 1]", (int)num_words,
                        (int)num_results);
  int64_t num_calls = PyArray_DIM((PyArrayObject *)values[0], 0), num_groups = PyArray_DIM((PyArrayObject *)values[2], 0) - 1;
  int is_ordered = num_groups >= 0 && PyArray_DIM((PyArrayObject *)values[1], 0) == num_calls && starts[0] >= 0;
  for (int64_t group = 0; is_ordered && group < num_groups; group++)
    is_ordered = starts[group] <= starts[group + 1] && starts[group + 1] <= num_calls;
  if (!is_ordered) return PyErr_Format(PyExc_ValueError, "the groups of calls lie beyond the %zd calls", (Py_ssize_t)num_calls);
  if (num_threads > MAX_THREADS) num_threads = MAX_THREADS;
  if (num_threads > num_groups) num_threads = num_groups;
  Calls *calls = malloc(sizeof(Calls));
  if (calls == NULL) return PyErr_NoMemory();
  *calls = (Calls){.function = entry->function, .words = words, .results = results, .starts = starts, .num_words = num_words,
                   .num_results = num_results, .num_groups = num_groups, .groups_left = num_groups, .holders = 1,
                   .lock = PTHREAD_MUTEX_INITIALIZER, .all_made = PTHREAD_COND_INITIALIZER};
  int status;
  Py_BEGIN_ALLOW_THREADS
  status = make_all(calls, num_threads);
  Py_END_ALLOW_THREADS
  if (status == 2) return PyErr_NoMemory();
  if (status != 0) return PyErr_Format(PyExc_RuntimeError, "%s raised an error in machine code", declared->name);
  Py_RETURN_NONE;
}

static PyMethodDef entry_methods[] = {
    {"each", (PyCFunction)(void (*)(void))each, METH_FASTCALL,
     "each(words, results, starts, num_threads): a call for each row of words, whose results are written to the same row. Calls "
     "starts[k] to starts[k + 1] are made one after the other, in one thread."},
    {NULL, NULL, 0, NULL},
};

static PyObject *name_of(PyObject *self, void *closure) {
  (void)closure;
  return PyUnicode_FromString(((EntryPoint *)self)->declared->name);
}

static PyObject *shown(PyObject *self) { return PyUnicode_FromFormat("<entry point %s>", ((EntryPoint *)self)->declared->name); }

static PyGetSetDef entry_attributes[] = {{"__name__", name_of, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject EntryPointType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "maskwright.foundation.compiled_loops.entry_points.EntryPoint",
    .tp_basicsize = sizeof(EntryPoint),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(EntryPoint, call),
    .tp_call = PyVectorcall_Call,
    .tp_repr = shown,
    .tp_getset = entry_attributes,
    .tp_methods = entry_methods,
    .tp_doc = "A loop of machine code.",
};

/* -- the module ------------------------------------------------------------------------------------------------------------ */

static PyObject *levels(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *found = PyList_New(0);
  for (int i = 0; found != NULL && LEVELS[i] != NULL; i++) {
    if (!has_level(LEVELS[i])) continue;
    PyObject *name = PyUnicode_FromString(LEVELS[i]);
    if (name == NULL || PyList_Append(found, name) < 0) Py_CLEAR(found);
    Py_XDECREF(name);
  }
  return found;
}

static PyObject *entry(PyObject *module, PyObject *arguments) {
  (void)module;
  const char *name, *level;
  if (!PyArg_ParseTuple(arguments, "ss", &name, &level)) return NULL;
  int which = 0;
  while (LEVELS[which] != NULL && strcmp(LEVELS[which], level) != 0) which++;
  if (LEVELS[which] == NULL || !has_level(level)) return PyErr_Format(PyExc_ValueError, "no level %s here", level);
  for (int i = 0; i < NUM_DECLARATIONS; i++) {
    if (strcmp(DECLARATIONS[i].name, name) != 0) continue;
    EntryPoint *made = PyObject_New(EntryPoint, &EntryPointType);
    if (made == NULL) return NULL;
    made->call = call;
    made->declared = &DECLARATIONS[i];
    made->function = DECLARATIONS[i].levels[which];
    return (PyObject *)made;
  }
  return PyErr_Format(PyExc_KeyError, "no entry point %s", name);
}

static PyObject *names(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *found = PyList_New(NUM_DECLARATIONS);
  for (int i = 0; found != NULL && i < NUM_DECLARATIONS; i++) {
    PyObject *name = PyUnicode_FromString(DECLARATIONS[i].name);
    if (name == NULL) {
      Py_CLEAR(found);
    } else {
      PyList_SET_ITEM(found, i, name);
    }
  }
  return found;
}

static PyMethodDef methods[] = {
    {"levels", levels, METH_NOARGS, "The levels for which there is code and that this processor has, the best one last."},
    {"names", names, METH_NOARGS, "The full names of all entry points."},
    {"entry", entry, METH_VARARGS, "An entry point by its full name and a level."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "entry_points", "The loops of the package as machine code.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_entry_points(void) {
  import_array();
  if (PyType_Ready(&EntryPointType) < 0) return NULL;
  return PyModule_Create(&definition);
}
