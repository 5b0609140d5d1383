public import OortCatalog
public import OortCatalog
import Synchronization

/// How programs' reads of files at services were answered, since the mount began.
public final class ReadCounts: Sendable {
    /// The reads of one account.
    public struct OfAccount: Hashable, Sendable {
        /// Reads of which all bytes were here.
        public var hits: Int64 = 0
        /// Reads that waited for the service.
        public var misses: Int64 = 0
    }

    private let counts = Mutex<[AccountID: OfAccount]>([:])

    /// The reads of an account.
    public subscript(account: AccountID) -> OfAccount {
        counts.withLock { $0[account] ?? OfAccount() }
    }

    func add(isHit: Bool, of account: AccountID) {
        counts.withLock { counts in
            if isHit {
                counts[account, default: OfAccount()].hits += 1
            } else {
                counts[account, default: OfAccount()].misses += 1
            }
        }
    }
}
