import ArgumentParser

/// How `oort status` ends, for scripts.
enum StatusOutcome: Int32 {
    /// The clouds have everything.
    case complete = 0
    /// Changes are on their way, or the tree is still being read.
    case pending = 3
    /// Something waits for a person: signed out, refused, a conflict, a disk.
    case needsPerson = 4
    /// No mount runs.
    case notMounted = 5

    /// What a report says in all.
    init(_ report: StatusReport) {
        guard let mount = report.mount else {
            self = .notMounted
            return
        }
        if mount.trouble != nil || mount.foldersAside?.isEmpty == false || mount.foundBeneath != nil
            || mount.keptAboveLimit != nil || report.accounts.contains(where: \.needsPerson)
        {
            self = .needsPerson
        } else if report.accounts.contains(where: \.isBusy) {
            self = .pending
        } else {
            self = .complete
        }
    }

    /// The exit code.
    var code: ExitCode { ExitCode(rawValue) }
}

extension AccountStatus {
    /// Whether something waits for a person.
    var needsPerson: Bool {
        switch state {
        case .trouble, .attention: return true
        case .notMounted, .reading, .upToDate, .paused, .syncing, .offline: break
        }
        return refusedCount ?? 0 > 0 || !conflicts.isEmpty || trouble != nil && state != .offline
    }

    /// Whether it is not known yet that the cloud has everything.
    var isBusy: Bool { pendingCount > 0 || state == .reading || state == .syncing }
}
