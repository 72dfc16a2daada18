/* A pool of threads for loops of a few microseconds.

   A worker that has nothing to do looks for the next loop for a while (SPIN_NS), then sleeps. Whoever starts a loop computes too. Each
   thread has a range of the loop to itself, so that it goes through memory in order, and takes from the ranges of others when its own
   is done; it waits only for parts that others have begun. If such a wait is long, somebody else uses the processor that the worker
   was on: loops then stay on one thread for a time (ALONE_NS), and the pool is tried again after it. */

#include "threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sched.h>
#include <time.h>

#define MAX_WORKERS 255
#define SPIN_NS 100000
#define LONG_WAIT_NS 300000
#define ALONE_NS 50000000
#define CLOSED (1 << 30)

static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER; /* by the one loop that runs in parallel */
static pthread_mutex_t sleeping = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static atomic_int num_sleepers;
static atomic_uint generation; /* how many loops there were */
static atomic_int inside = CLOSED; /* workers that are in the loop; CLOSED when it takes no more */
static int num_workers; /* that were started */
static int64_t alone_until;

static struct {
  Part part;
  void *context;
  int64_t grain;
  int num_helpers; /* workers that may take part */
} loop;

static struct {
  _Atomic int64_t next; /* place that nobody has taken */
  int64_t end;
  char apart[112]; /* from what other threads write */
} ranges[MAX_WORKERS + 1] __attribute__((aligned(128)));

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static inline void pause_briefly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* First of one's own range, then of those behind it. */
static void take_parts(int thread) {
  int num_threads = loop.num_helpers + 1;
  for (int i = 0; i < num_threads; i++) {
    int of = (thread + i) % num_threads;
    for (;;) {
      int64_t begin = atomic_fetch_add(&ranges[of].next, loop.grain), end = ranges[of].end;
      if (begin >= end) break;
      loop.part(loop.context, begin, begin + loop.grain < end ? begin + loop.grain : end);
    }
  }
}

static void share(int64_t count, int num_threads) {
  for (int i = 0; i < num_threads; i++) {
    atomic_store_explicit(&ranges[i].next, count * i / num_threads, memory_order_relaxed);
    ranges[i].end = count * (i + 1) / num_threads;
  }
}

/* Returns the number of the loop that has been started after `seen`. */
static unsigned next_loop(unsigned seen) {
  int64_t end = now_ns() + SPIN_NS;
  for (int i = 1; atomic_load(&generation) == seen; i++) {
    pause_briefly();
    if (i % 64 == 0 && now_ns() > end) {
      pthread_mutex_lock(&sleeping);
      atomic_fetch_add(&num_sleepers, 1);
      while (atomic_load(&generation) == seen) pthread_cond_wait(&wake, &sleeping);
      atomic_fetch_sub(&num_sleepers, 1);
      pthread_mutex_unlock(&sleeping);
    }
  }
  return atomic_load(&generation);
}

static void *work(void *argument) {
  int index = (int)(intptr_t)argument;
  for (unsigned seen = 0;;) {
    seen = next_loop(seen);
    if (!(atomic_fetch_add(&inside, 1) & CLOSED) && index < loop.num_helpers) take_parts(index + 1);
    atomic_fetch_sub(&inside, 1);
  }
  return NULL;
}

/* The threads of a process are not those of its children. */
static void forget_workers(void) {
  pthread_mutex_init(&in_use, NULL);
  pthread_mutex_init(&sleeping, NULL);
  pthread_cond_init(&wake, NULL);
  atomic_store(&num_sleepers, 0);
  atomic_store(&inside, CLOSED);
  num_workers = 0;
}

static int start_workers(int wanted) {
  if (num_workers >= wanted) return wanted;
  static int is_registered;
  if (!is_registered) is_registered = pthread_atfork(NULL, NULL, forget_workers) == 0;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for threads of Python */
  while (num_workers < wanted) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, (void *)(intptr_t)num_workers) != 0) break;
    pthread_detach(thread);
    num_workers++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return num_workers;
}

void run_in_parallel(Part part, void *context, int64_t count, int64_t grain, int num_threads) {
  int wanted = num_threads - 1 < MAX_WORKERS ? num_threads - 1 : MAX_WORKERS;
  if (wanted < 1 || count <= grain || pthread_mutex_trylock(&in_use) != 0) {
    part(context, 0, count);
    return;
  }
  if (alone_until != 0 && now_ns() < alone_until) {
    pthread_mutex_unlock(&in_use);
    part(context, 0, count);
    return;
  }
  loop.part = part, loop.context = context, loop.grain = grain;
  loop.num_helpers = start_workers(wanted);
  share(count, loop.num_helpers + 1);
  atomic_fetch_and(&inside, ~CLOSED);
  atomic_fetch_add(&generation, 1);
  if (atomic_load(&num_sleepers) > 0) {
    pthread_mutex_lock(&sleeping);
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&sleeping);
  }
  take_parts(0);
  atomic_fetch_or(&inside, CLOSED);
  int64_t since = 0;
  alone_until = 0;
  for (int i = 1; atomic_load(&inside) != CLOSED; i++) {
    pause_briefly();
    if (i % 64 == 0) {
      int64_t now = now_ns();
      since = since == 0 ? now : since;
      if (now - since > LONG_WAIT_NS) alone_until = now + ALONE_NS, sched_yield();
    }
  }
  pthread_mutex_unlock(&in_use);
}
