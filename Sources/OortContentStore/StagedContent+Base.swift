import OortModel
import Synchronization

/// What a staged content takes over from the revision that it lies over.
extension StagedContent {
    /// Takes over what is missing from the base: afterwards the staged file has all bytes.
    ///
    /// Only while frozen.
    func materialise() async throws(ContentError) {
        guard let base else { return }
        while let missing = try pieces(0..<size).first(where: { !$0.isOwn })?.range {
            let part =
                missing.lowerBound..<min(missing.upperBound, missing.lowerBound + (4 << 20))
            // What goes up with a program's bytes is of exactly the revision that they lie over.
            let bytes = try await base.verifiedBytes(part)
            try locked { state throws(ContentError) in
                // The upload that this is for makes room: it is not refused by the limit.
                try takeOver(part, bytes, &state)
            }
        }
    }

    /// Takes over all that is missing from a small base, fetched and verified first, while programs may
    /// write: from then on the content needs neither the cache nor the service.
    ///
    /// Where there is no room for it, the base is needed until the upload.
    func standAlone() async throws(ContentError) {
        guard let base else { return }
        let whole = 0..<base.size
        let bytes = try await base.verifiedBytes(whole)
        try locked { state throws(ContentError) in
            let missing = state.missing(in: whole)
            let count = missing.reduce(Int64(0)) { $0 + ($1.upperBound - $1.lowerBound) }
            guard state.cached == nil, count > 0, store.room.hasRoom(for: count) else { return }
            try takeOver(whole, bytes, &state)
        }
    }

    /// Writes the base's bytes of a range where the program wrote none; they are the content's own from
    /// then on.
    private func takeOver(
        _ range: Range<Int64>,
        _ bytes: [UInt8],
        _ state: inout State
    ) throws(ContentError) {
        guard bytes.count == range.upperBound - range.lowerBound else {
            throw .damaged(detail: "\(bytes.count) bytes of the base in place of \(range)")
        }
        for gap in state.missing(in: range) {
            let first = Int(gap.lowerBound - range.lowerBound)
            let growth = gap.upperBound - gap.lowerBound
            try file().write(bytes[first..<first + Int(growth)], at: gap.lowerBound)
            try state.journal?.append(.written(gap))
            state.own.insert(contentsOf: gap)
            state.filled.insert(contentsOf: gap)
            store.room.addStaged(growth)
            state.charged += growth
        }
    }
}

extension StagedContent.State {
    /// The stretches of a range that are the base's still.
    fileprivate func missing(in range: Range<Int64>) -> [Range<Int64>] {
        let range = range.clamped(to: 0..<baseEnd)
        return range.isEmpty ? [] : Array(own.gaps(in: range))
    }
}
