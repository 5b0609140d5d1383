import GRDB
import Logging
import Synchronization

/// Damage of the database, which only a read of the damaged page would find.
extension Catalog {
    /// What is wrong with the database or its disk, as far as it was noticed; nil when nothing is.
    ///
    /// `.corrupt` for good; `.diskFull`, and `.storage` where the disk fails, until a transaction succeeds.
    public var trouble: CatalogError? { health.withLock { $0 } }

    /// Looks through all pages; `trouble` reports what it finds.
    ///
    /// Takes as long as the file is large, beside everything else. Ends early when the task is cancelled.
    ///
    /// - Throws: `.corrupt` with the first finding; `.storage` when it could not be looked through.
    public func checkPages() async throws(CatalogError) {
        let finding = try await readAsync { database in
            // https://www.sqlite.org/pragma.html#pragma_quick_check: "ok", or what is wrong.
            try database.first("PRAGMA quick_check(1)") { $0[0] as String } ?? "no answer"
        }
        guard finding != "ok" else { return }
        throw note(.corrupt(detail: finding))
    }

    /// The catalog's word for an error of SQLite's: `trouble` reports one of the file or the disk from now
    /// on.
    func noted(_ error: any Error) -> CatalogError {
        let translated = Self.translate(error)
        guard let error = error as? DatabaseError else { return translated }
        // https://www.sqlite.org/rescode.html
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_READONLY,
            .SQLITE_CANTOPEN:
            return note(translated)
        default: return translated
        }
    }

    private func note(_ error: CatalogError) -> CatalogError {
        let isNew = health.withLock { known in
            if case .corrupt = known { return false }
            defer { known = error }
            return known != error
        }
        if isNew { logger.error("the catalog fails", metadata: ["cause": "\(error)"]) }
        return error
    }

    /// A transaction came through: the disk has room and works.
    func noteSuccess() {
        health.withLock { known in
            if case .corrupt = known { return }
            known = nil
        }
    }
}
