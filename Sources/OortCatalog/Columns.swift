import Foundation
import GRDB
import GRDBSQLite

/// The columns of the row at which a statement stands, read where SQLite has them.
///
/// GRDB's `Row` copies a row and decodes it by generic code; the catalog reads some hundred
/// thousand rows a minute while trees are written, and spent a fifth of its time there. Valid only
/// inside the closure that it is given to. The tables are STRICT, so that no value is of another
/// type than its column.
@safe
struct Columns {
    private let statement: SQLiteStatement

    fileprivate init(_ statement: SQLiteStatement) { unsafe self.statement = statement }

    private func isNull(_ index: Int) -> Bool {
        unsafe sqlite3_column_type(statement, CInt(index)) == SQLITE_NULL
    }

    /// An integer.
    subscript(index: Int) -> Int64 { unsafe sqlite3_column_int64(statement, CInt(index)) }

    /// An integer, or nil for NULL.
    subscript(index: Int) -> Int64? { isNull(index) ? nil : self[index] as Int64 }

    /// An integer that is small.
    subscript(index: Int) -> Int { Int(self[index] as Int64) }

    /// A truth value, stored as an integer.
    subscript(index: Int) -> Bool { self[index] as Int64 != 0 }

    /// A text; empty for NULL.
    subscript(index: Int) -> String {
        guard let text = unsafe sqlite3_column_text(statement, CInt(index)) else { return "" }
        let count = unsafe Int(sqlite3_column_bytes(statement, CInt(index)))
        return unsafe String(
            decoding: UnsafeBufferPointer(start: text, count: count),
            as: UTF8.self
        )
    }

    /// A text, or nil for NULL.
    subscript(index: Int) -> String? { isNull(index) ? nil : self[index] as String }

    /// Bytes, or nil for NULL.
    subscript(index: Int) -> [UInt8]? {
        guard !isNull(index) else { return nil }
        let count = unsafe Int(sqlite3_column_bytes(statement, CInt(index)))
        guard count > 0, let bytes = unsafe sqlite3_column_blob(statement, CInt(index)) else {
            return []
        }
        return unsafe [UInt8](UnsafeRawBufferPointer(start: bytes, count: count))
    }
}

extension Database {
    /// The first row of a query as `read` reads it; nil when there is none.
    ///
    /// The statement is compiled once a connection. `read` must not run the same query.
    func first<T>(
        _ sql: String,
        _ arguments: StatementArguments = StatementArguments(),
        _ read: (Columns) throws -> T
    ) throws -> T? {
        var result: T?
        try step(cachedStatement(sql: sql), arguments) { columns in
            result = try read(columns)
            return false
        }
        return result
    }

    /// All rows of a query as `read` reads them.
    ///
    /// The statement is compiled once a connection. `read` must not run the same query.
    func all<T>(
        _ sql: String,
        _ arguments: StatementArguments = StatementArguments(),
        _ read: (Columns) throws -> T
    ) throws -> [T] {
        var results: [T] = []
        try step(cachedStatement(sql: sql), arguments) { columns in
            results.append(try read(columns))
            return true
        }
        return results
    }

    /// Hands the rows of a query to `read` for as long as that says to go on.
    ///
    /// The statement is compiled once a connection. `read` must not run the same query.
    func each(
        _ sql: String,
        _ arguments: StatementArguments = StatementArguments(),
        _ read: (Columns) throws -> Bool
    ) throws { try step(cachedStatement(sql: sql), arguments, read) }

    /// The first row's first column, a text; nil when it is NULL or there is no row.
    func text(_ sql: String, _ arguments: StatementArguments) throws -> String? {
        try first(sql, arguments) { $0[0] as String? } ?? nil
    }

    /// The first row's first column, an integer; nil when it is NULL or there is no row.
    func number(_ sql: String, _ arguments: StatementArguments) throws -> Int64? {
        try first(sql, arguments) { $0[0] as Int64? } ?? nil
    }

    /// Whether a query has a row.
    func has(_ sql: String, _ arguments: StatementArguments) throws -> Bool {
        try first(sql, arguments) { _ in true } ?? false
    }

    /// Runs a statement that changes something; it is compiled once a connection.
    func run(_ sql: String, _ arguments: StatementArguments) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    /// Steps through the rows of a query for as long as `body` says to go on.
    private func step(
        _ statement: Statement,
        _ arguments: StatementArguments,
        _ body: (Columns) throws -> Bool
    ) throws {
        try statement.setArguments(arguments)
        let raw = unsafe statement.sqliteStatement
        // A query that is not reset would hold its snapshot, and the WAL with it.
        defer { _ = unsafe sqlite3_reset(raw) }
        while true {
            switch unsafe sqlite3_step(raw) {
            case SQLITE_ROW:
                guard try body(unsafe Columns(raw)) else { return }
            case SQLITE_DONE: return
            case let code:
                throw DatabaseError(
                    resultCode: ResultCode(rawValue: code),
                    message: lastErrorMessage,
                    sql: statement.sql
                )
            }
        }
    }
}
