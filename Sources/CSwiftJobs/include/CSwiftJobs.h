// Takes the jobs of Swift's global executor away from its pool of threads, for single threads that wish to
// run theirs by themselves.
#ifndef CSwiftJobs_h
#define CSwiftJobs_h

#pragma clang assume_nonnull begin

/// Gets a job that the calling thread handed to the global executor; it must be run exactly once.
typedef void (*swift_jobs_taker)(void *context, void *job);

/// From now on `taker` gets each job that the calling thread hands to the global executor; with a null
/// `taker` the thread's jobs go to the executor's pool again. Other threads are not concerned, and neither
/// are `Task.sleep` and `Task.yield`, which know only the pool.
void swift_jobs_take(swift_jobs_taker _Nullable taker, void *_Nullable context);

#pragma clang assume_nonnull end

#endif
