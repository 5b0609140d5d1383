import Foundation
import Logging
import OortSync
import OortTransport
import Synchronization

extension CloudMount {
    func pause(_ wish: PauseRequest) async throws(Failure) -> PaceReport {
        try checkAccount(wish.account)
        let until = wish.seconds.map { Date(timeIntervalSinceNow: $0) }
        return try await changePace { pace in
            let pause = Pace.Pause(until: until)
            if let account = wish.account {
                pace.accounts[account] = pause
            } else {
                pace.everything = pause
            }
        }
    }

    func resume(_ wish: ResumeRequest) async throws(Failure) -> PaceReport {
        try checkAccount(wish.account)
        let names = accounts.withLock { Array($0.keys) }
        return try await changePace { $0.resume(wish.account, of: names) }
    }

    func limit(_ wish: LimitRequest) async throws(Failure) -> PaceReport {
        try await changePace { pace in
            if wish.off == true { (pace.uploadLimit, pace.downloadLimit) = (nil, nil) }
            if let up = wish.up { pace.uploadLimit = up }
            if let down = wish.down { pace.downloadLimit = down }
        }
    }

    /// Reads the stored limits; a file that cannot be read limits nothing, and is reported.
    func readPace() {
        do {
            let kept = try Pace.read(options.folders.paceFile)
            pace.withLock { $0 = kept }
        } catch {
            logger.error("limits and pauses are not known", metadata: ["cause": "\(error)"])
        }
    }

    /// Has the transfers and the engines go by the pace.
    func applyPace() async {
        let now = Date()
        let (kept, change) = pace.withLock { pace in
            pace.forgetPast(at: now)
            paceChanges.wrappingAdd(1, ordering: .relaxed)
            return (pace, paceChanges.load(ordering: .relaxed))
        }
        bandwidth.up.bytesPerSecond = kept.uploadLimit
        bandwidth.down.bytesPerSecond = kept.downloadLimit
        for account in accounts.withLock({ Array($0.values) }) {
            await account.setPaused(kept.pause(of: account.name, at: now) != nil)
        }
        guard let end = kept.nextEnd else { return }
        // Ends by itself; one of an older pace does nothing. The clock on the wall counts, also
        // through a sleep of the machine's.
        Task { [weak self] in
            while end > Date() {
                let left = min(end.timeIntervalSinceNow + 0.05, 30)
                guard (try? await Task.sleep(for: .seconds(max(left, 0.05)))) != nil else { return }
                guard self?.paceChanges.load(ordering: .relaxed) == change else { return }
            }
            await self?.applyPace()
        }
    }

    private func changePace(_ change: (inout Pace) -> Void) async throws(Failure) -> PaceReport {
        let before = pace.withLock { $0 }
        var after = before
        change(&after)
        do {
            try after.write(options.folders.paceFile)
        } catch {
            throw Failure(
                "\(options.folders.paceFile) cannot be written: \(error.reason)",
                advice: "Check the disk; nothing was changed."
            )
        }
        pace.withLock { $0 = after }
        await applyPace()
        return paceReport
    }

    private var paceReport: PaceReport {
        let now = Date()
        let kept = pace.withLock { $0 }
        let names = accounts.withLock { $0.keys.sorted() }
        return PaceReport(
            uploadLimit: kept.uploadLimit,
            downloadLimit: kept.downloadLimit,
            paused: names.compactMap { name in
                kept.pause(of: name, at: now).map { PausedAccount(account: name, until: $0.until) }
            }
        )
    }

    private func checkAccount(_ name: String?) throws(Failure) {
        guard let name, accounts.withLock({ $0[name] }) == nil else { return }
        let names = accounts.withLock { $0.keys.sorted() }.joined(separator: ", ")
        throw Failure(
            "There is no account \"\(name)\" that is signed in.",
            advice: names.isEmpty ? "`oort login SERVICE` adds one." : "There are: \(names)."
        )
    }
}
