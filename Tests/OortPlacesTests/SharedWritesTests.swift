import Foundation
import GRDB
import OortModel
import Synchronization
import Testing

@testable import OortPlaces

/// Writes of the map that wait for the disk together.
@Suite("writes that wait for the disk together", .timeLimit(.minutes(1)))
struct SharedWritesTests {
    private func with(_ body: (PlaceMap) async throws -> Void) async throws {
        let folder = NSTemporaryDirectory() + "map-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let map = try PlaceMap(path: folder + "/map.sqlite")
        defer { map.close() }
        try await body(map)
    }

    /// Counts what becomes durable.
    private final class Commits: TransactionObserver, Sendable {
        let count = Mutex(0)
        func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
        func databaseDidChange(with event: DatabaseEvent) {}
        func databaseDidCommit(_ database: Database) { count.withLock { $0 += 1 } }
        func databaseDidRollback(_ database: Database) {}
    }

    private final class Flag: Sendable {
        private let value = Mutex(false)
        var isRaised: Bool { value.withLock(\.self) }
        func raise() { value.withLock { $0 = true } }
    }

    /// Makes a folder's row.
    private static func add(_ name: String, _ database: Database) throws {
        try database.execute(
            sql: "INSERT INTO place (parent, name, is_folder, changed) VALUES (1, ?, 1, 0)",
            arguments: [name]
        )
    }

    private func names(_ map: PlaceMap) async throws -> Set<String> {
        try await map.read {
            Set(try String.fetchAll($0, sql: "SELECT name FROM place WHERE parent = 1"))
        }
    }

    /// Runs writes so that all of them wait while one is under way; what each ended with.
    private func together(
        _ count: Int,
        _ map: PlaceMap,
        _ body: @escaping @Sendable (Int, Database) throws -> Void
    ) async throws -> [Int: Result<Void, ProviderError>] {
        let goesOn = DispatchSemaphore(value: 0)
        let hasBegun = Flag()
        let first = Task {
            try await map.write { _ in
                hasBegun.raise()
                goesOn.wait()
            }
        }
        while !hasBegun.isRaised { await Task.yield() }
        return try await withThrowingTaskGroup { group in
            for number in 0..<count {
                group.addTask {
                    do throws(ProviderError) {
                        try await map.write { try body(number, $0) }
                        return (number, Result<Void, ProviderError>.success(()))
                    } catch { return (number, .failure(error)) }
                }
            }
            while map.countOfWaitingWrites < count { await Task.yield() }
            goesOn.signal()
            try await first.value
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    @Test("forty writes become durable at once, and the failure of one undoes that one alone")
    func failure() async throws {
        try await with { map in
            let commits = Commits()
            try await map.write { $0.add(transactionObserver: commits) }
            let before = commits.count.withLock(\.self)
            let outcomes = try await together(40, map) { number, database in
                try Self.add("\(number)", database)
                if number == 7 { throw ProviderError(.nameTaken, detail: "seven") }
            }
            for (number, outcome) in outcomes {
                if number == 7 {
                    #expect(throws: ProviderError.self) { try outcome.get() }
                } else {
                    #expect(throws: Never.self) { try outcome.get() }
                }
            }
            #expect(outcomes.count == 40)
            #expect(try await names(map) == Set((0..<40).filter { $0 != 7 }.map(String.init)))
            // Of the first one, and of all others.
            #expect(commits.count.withLock(\.self) - before == 2)
        }
    }

    @Test("a disk that takes nothing back fails all of them, and nothing of them stays")
    func fullDisk() async throws {
        try await with { map in
            let outcomes = try await together(20, map) { number, database in
                try Self.add("\(number)", database)
                // As the disk does it when it is full.
                if number == 11 { try database.execute(sql: "ROLLBACK") }
                if number == 11 { throw DatabaseError(resultCode: .SQLITE_FULL) }
            }
            for outcome in outcomes.values {
                #expect(throws: ProviderError.self) { try outcome.get() }
            }
            #expect(try await names(map) == [])
            try await map.write { try Self.add("later", $0) }
            #expect(try await names(map) == ["later"])
        }
    }
}
