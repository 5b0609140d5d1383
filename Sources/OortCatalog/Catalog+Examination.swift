import GRDB

extension Catalog {
    /// Checks a catalog's file without opening it as a catalog: nothing is created, upgraded or locked, and
    /// a mount may be using it.
    ///
    /// Takes as long as the file is large. Ends early when the task is cancelled.
    ///
    /// - Parameter path: the database file; it must exist.
    /// - Throws: `.corrupt` with the first finding, `.tooNew`, `.storage` when it cannot be read.
    public static func examine(path: String) async throws(CatalogError) {
        do {
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(10)
            let database = try DatabaseQueue(path: path, configuration: configuration)
            defer { try? database.close() }
            try await database.read { database in
                if try migrations.hasBeenSuperseded(database) { throw CatalogError.tooNew }
                // https://www.sqlite.org/pragma.html#pragma_quick_check: "ok", or what is wrong.
                let finding = try String.fetchOne(database, sql: "PRAGMA quick_check(1)")
                guard finding == "ok" else {
                    throw CatalogError.corrupt(detail: finding ?? "no answer")
                }
            }
        } catch { throw translate(error) }
    }
}
