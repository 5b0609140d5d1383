extension SyncEngine {
    /// Sends nothing from now on, or goes on sending.
    ///
    /// Small calls that are under way end by themselves. Large contents stop, and later go on where the
    /// service has confirmed them. Unknown outcomes are asked about later. The service's news are read all
    /// the same.
    public func setPaused(_ isPaused: Bool) {
        guard self.isPaused != isPaused else { return }
        self.isPaused = isPaused
        feed.growsOld(order.next())
        if isPaused {
            // When sending goes on, the service is asked what it has, as after a restart.
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
        // Its last request may be without an answer.
        if task.isCancelled { unanswered.mayExist = true }
        waker.yield()
    }
}
