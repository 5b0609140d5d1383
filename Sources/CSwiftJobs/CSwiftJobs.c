#include "CSwiftJobs.h"

#include <pthread.h>
#include <stddef.h>

#define SWIFT_CC __attribute__((swiftcall))

// The runtime's hook, as its header Concurrency.h declares it
// (https://github.com/swiftlang/swift/blob/main/include/swift/Runtime/Concurrency.h).
typedef SWIFT_CC void (*enqueue)(void *job);
extern SWIFT_CC void (*swift_task_enqueueGlobal_hook)(void *job, enqueue original);

static _Thread_local swift_jobs_taker taker = NULL;
static _Thread_local void *context = NULL;

static SWIFT_CC void take(void *job, enqueue original) {
  if (taker)
    taker(context, job);
  else
    original(job);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void install(void) { swift_task_enqueueGlobal_hook = take; }

void swift_jobs_take(swift_jobs_taker new_taker, void *new_context) {
  pthread_once(&once, install);
  taker = new_taker;
  context = new_context;
}
