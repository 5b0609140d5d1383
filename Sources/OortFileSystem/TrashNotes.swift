import OortModel
import Synchronization

/// The small files that programs write into `info` before they move something to the trash, by name.
///
/// Kept in memory: an item that was moved has its own copy of them in the catalog.
final class TrashNotes: Sendable {
    /// The longest file, in bytes: a path of `PATH_MAX` with each byte as three.
    static let longest = 16_384
    /// Of more than these, the oldest go.
    private static let most = 1024

    /// One file.
    struct Note {
        /// Its number.
        var number: Int64
        /// Its name.
        var name: String
        /// Its content.
        var bytes: [UInt8]
        /// When that was written.
        var modified: Timestamp
    }

    private struct State {
        var notes: [Int64: Note] = [:]
        var numbers: [ExactText: Int64] = [:]
        var handles: [UInt64: TrashPlace] = [:]
        var lastNumber: Int64 = 0
        var lastHandle: UInt64 = 0
    }

    private let state = Mutex(State())

    /// The files, the oldest first.
    var all: [Note] {
        state.withLock { $0.notes.values.sorted { $0.number < $1.number } }
    }

    /// A file by its number.
    subscript(number: Int64) -> Note? { state.withLock { $0.notes[number] } }

    /// A file by its name.
    func note(named name: String) -> Note? {
        state.withLock { state in
            state.numbers[ExactText(name)].flatMap { state.notes[$0] }
        }
    }

    /// Makes a file, in the place of one of this name.
    func make(_ name: String, bytes: [UInt8] = []) -> Note {
        state.withLock { state in
            if let old = state.numbers[ExactText(name)] { state.notes[old] = nil }
            if state.notes.count >= Self.most,
                let oldest = state.notes.values.min(by: {
                    $0.number < $1.number
                })
            {
                state.notes[oldest.number] = nil
                state.numbers[ExactText(oldest.name)] = nil
            }
            state.lastNumber += 1
            let note = Note(number: state.lastNumber, name: name, bytes: bytes, modified: .now)
            state.notes[note.number] = note
            state.numbers[ExactText(name)] = note.number
            return note
        }
    }

    /// Changes a file's content; nil when it is gone.
    func change(_ number: Int64, _ body: (inout [UInt8]) -> Void) -> Note? {
        state.withLock { state in
            guard var note = state.notes[number] else { return nil }
            body(&note.bytes)
            note.modified = .now
            state.notes[number] = note
            return note
        }
    }

    /// Takes a file away; false when there is none of this name.
    func remove(_ name: String) -> Bool {
        state.withLock { state in
            guard let number = state.numbers.removeValue(forKey: ExactText(name)) else {
                return false
            }
            state.notes[number] = nil
            return true
        }
    }

    /// Gives a file another name, in the place of one of that name; false when there is no such file.
    func rename(_ name: String, to newName: String) -> Bool {
        state.withLock { state in
            guard let number = state.numbers.removeValue(forKey: ExactText(name)) else {
                return false
            }
            if let old = state.numbers[ExactText(newName)] { state.notes[old] = nil }
            state.numbers[ExactText(newName)] = number
            state.notes[number]?.name = newName
            return true
        }
    }

    // MARK: Handles

    /// Handles of the trash have the highest bit, which those of other files do not.
    private static let mark: UInt64 = 1 << 63

    /// Opens what has bytes.
    func open(_ place: TrashPlace) -> FileHandle {
        state.withLock { state in
            state.lastHandle += 1
            state.handles[state.lastHandle] = place
            return FileHandle(Self.mark | state.lastHandle)
        }
    }

    /// Whether a handle is of the trash.
    static func isHandle(_ handle: FileHandle) -> Bool { handle.rawValue & mark != 0 }

    /// What a handle has open.
    func place(of handle: FileHandle) -> TrashPlace? {
        state.withLock { $0.handles[handle.rawValue & ~Self.mark] }
    }

    /// Closes a handle.
    func close(_ handle: FileHandle) {
        state.withLock { _ = $0.handles.removeValue(forKey: handle.rawValue & ~Self.mark) }
    }
}
