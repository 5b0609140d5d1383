import OortModel
import Synchronization

/// Gives our operations their turns: never two at one place, and none below a folder whose path changes.
///
/// It also knows which places were touched, since a listing that was under way meanwhile may show them
/// before or after.
///
/// Isolation: any thread.
final class PlaceTurns: Sendable {
    /// A name in a folder.
    struct Place: Hashable, Sendable {
        /// The folder's row.
        let folder: Int64
        let name: ExactText

        init(_ folder: Int64, _ name: String) {
            self.folder = folder
            self.name = ExactText(name)
        }
    }

    /// What an operation needs for as long as it runs.
    struct Claim: Equatable, Sendable {
        /// The places that it changes; none where it only looks.
        var places: Set<Place>
        /// The folders, up to the root, whose paths must stay.
        var above: Set<Int64>
        /// The row that gets another path, or is removed, a folder with all below it.
        var moved: Int64?
        /// The row that is being opened by its path.
        var opened: Int64?

        func excludes(_ other: Claim) -> Bool {
            if let moved, other.above.contains(moved) || other.opened == moved { return true }
            if let moved = other.moved, above.contains(moved) || opened == moved { return true }
            return !places.isDisjoint(with: other.places)
        }
    }

    private struct Waiter {
        let number: UInt64
        let claim: Claim
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        /// Counts beginnings and ends.
        var tick: UInt64 = 0
        /// The operations that are under way, by their numbers.
        var held: [UInt64: Claim] = [:]
        /// Claims that wait for them, the oldest first.
        var waiting: [Waiter] = []
        /// The numbers of claims that were cancelled before they waited.
        var cancelled: Set<UInt64> = []
        /// The places of operations that are under way.
        var busy: Set<Place> = []
        /// When the last operation at a place ended.
        var touched: [Place: UInt64] = [:]
        /// For each folder, when its newest recorded listing began.
        var written: [Int64: UInt64] = [:]
        /// When the listings that are under way began.
        var listings: [UInt64: Int] = [:]

        func isHeld(against claim: Claim) -> Bool { held.values.contains { $0.excludes(claim) } }

        mutating func hold(_ claim: Claim, as number: UInt64) {
            held[number] = claim
            busy.formUnion(claim.places)
        }

        mutating func touch(_ places: Set<Place>) {
            tick += 1
            for place in places { touched[place] = tick }
            // An operation that ended before all listings under way began concerns none of them.
            guard touched.count > 1000 else { return }
            let oldest = listings.keys.min() ?? tick
            touched = touched.filter { $0.value >= oldest }
        }
    }

    private let state = Mutex(State())

    // MARK: Turns

    /// Waits until nothing stands in the way of a claim, and holds it; returns its number for `release`.
    ///
    /// An operation that changes something waits behind those that came before. One that only looks waits
    /// for those that are under way, but not for those that wait themselves: a rename that waits for a long
    /// upload holds up no reader.
    ///
    /// - Throws: `.cancelled`; nothing is held then.
    func hold(_ claim: Claim) async throws(ProviderError) -> UInt64 {
        let number = state.withLock { state in
            state.tick += 1
            return state.tick
        }
        let isHeld = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if state.cancelled.remove(number) != nil { return false }
                    let isBehind =
                        !claim.places.isEmpty
                        && state.waiting.contains { $0.claim.excludes(claim) }
                    guard isBehind || state.isHeld(against: claim) else {
                        state.hold(claim, as: number)
                        return true
                    }
                    state.waiting.append(
                        Waiter(number: number, claim: claim, continuation: continuation)
                    )
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                if let index = state.waiting.firstIndex(where: { $0.number == number }) {
                    return state.waiting.remove(at: index)
                }
                if state.held[number] == nil { state.cancelled.insert(number) }
                return nil
            }
            waiter?.continuation.resume(returning: false)
            // Claims that waited behind this one may begin.
            if waiter != nil { goOn() }
        }
        state.withLock { _ = $0.cancelled.remove(number) }
        guard isHeld else { throw ProviderError(.cancelled, detail: "cancelled while waiting") }
        return number
    }

    /// Holds a claim at once, or returns nil if another one stands in its way.
    func holdAtOnce(_ claim: Claim) -> UInt64? {
        state.withLock { state in
            guard !state.isHeld(against: claim) else { return nil }
            state.tick += 1
            state.hold(claim, as: state.tick)
            return state.tick
        }
    }

    /// Releases the claim that `hold` gave.
    func release(_ number: UInt64) {
        state.withLock { state in
            guard let claim = state.held.removeValue(forKey: number) else { return }
            state.busy.subtract(claim.places)
            state.touch(claim.places)
        }
        goOn()
    }

    private func goOn() {
        let next = state.withLock { state -> [Waiter] in
            var granted: [Waiter] = []
            var left: [Waiter] = []
            for waiter in state.waiting {
                let isBehind =
                    !waiter.claim.places.isEmpty
                    && left.contains { $0.claim.excludes(waiter.claim) }
                if isBehind || state.isHeld(against: waiter.claim) {
                    left.append(waiter)
                } else {
                    state.hold(waiter.claim, as: waiter.number)
                    granted.append(waiter)
                }
            }
            state.waiting = left
            return granted
        }
        for waiter in next { waiter.continuation.resume(returning: true) }
    }

    // MARK: Listings

    /// Notes that a listing begins; `listingEnds` gets the returned number once the listing is recorded.
    func listingBegins() -> UInt64 {
        state.withLock { state in
            state.tick += 1
            state.listings[state.tick, default: 0] += 1
            return state.tick
        }
    }

    func listingEnds(_ began: UInt64) {
        state.withLock { state in
            let left = (state.listings[began] ?? 1) - 1
            state.listings[began] = left > 0 ? left : nil
        }
    }

    /// Whether a listing of a folder may be recorded: no newer one was.
    func writes(_ folder: Int64, begun: UInt64) -> Bool {
        state.withLock { state in
            guard (state.written[folder] ?? 0) < begun else { return false }
            if state.written.count > 1000 {
                let oldest = state.listings.keys.min() ?? state.tick
                state.written = state.written.filter { $0.value >= oldest }
            }
            state.written[folder] = begun
            return true
        }
    }

    /// Whether a look at a place may be recorded: nothing newer is known of it.
    ///
    /// Listings that began before then no longer count for the place.
    func writes(_ place: Place, begun: UInt64) -> Bool {
        state.withLock { state in
            guard !state.busy.contains(place), (state.touched[place] ?? 0) <= begun,
                (state.written[place.folder] ?? 0) < begun
            else { return false }
            state.touch([place])
            return true
        }
    }

    /// Whether an operation touched the place since the listing began.
    func isUnsettled(_ place: Place, since began: UInt64) -> Bool {
        state.withLock { state in
            state.busy.contains(place) || (state.touched[place] ?? 0) > began
        }
    }
}
