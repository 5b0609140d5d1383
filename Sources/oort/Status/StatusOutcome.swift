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
        if report.mount == nil {
            self = .notMounted
        } else if !Need.all(in: report).isEmpty {
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
    /// Whether it is not known yet that the cloud has everything.
    var isBusy: Bool { pendingCount > 0 || state == .reading || state == .syncing }
}
