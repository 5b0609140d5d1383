extension SyncEngine {
    /// Sends nothing from now on, or goes on sending.
    ///
    /// Small calls that are under way end by themselves; large contents stop, and go on later where
    /// the service has confirmed them; what became of lost answers is asked later. News of the service's are read all the same.
    public func setPaused(_ isPaused: Bool) {
        guard self.isPaused != isPaused else { return }
        self.isPaused = isPaused
        feed.growsOld(order.next())
        if isPaused {
            // The service is asked what it has when sending goes on, as after a restart.
            if !longTasks.all.isEmpty { unanswered.mayExist = true }
            for task in longTasks.all { task.cancel() }
        }
        planSoon()
    }

    /// Runs work that may take long so that a pause can end it.
    func interruptibly(_ work: @escaping @Sendable () async -> Void) async {
        // Owned by this call, which waits for it, and ended with it.
        let task = Task { await work() }
        let number = longTasks.add(task)
        if isPaused { task.cancel() }
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        longTasks.remove(number)
        // What it asked of the service was perhaps not answered.
        if task.isCancelled { unanswered.mayExist = true }
        waker.yield()
    }
}
