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
            // The upload that this is for makes room: it is not refused by the limit.
            try takeOver(part, bytes, limit: .max)
        }
    }

    /// Takes over all that is missing from a small base, fetched and verified first, while programs may
    /// write: from then on the content needs neither the cache nor the service.
    ///
    /// Where there is no room for it, the base is needed until the upload.
    func standAlone(in turn: CompletionTurn) async throws(ContentError) {
        guard let base else { return }
        _ = try await base.verifiedBytes(0..<base.size)
        try await turn.take { () throws(ContentError) in
            // Read once more, so that none is held while others are written.
            guard base.isVerified, let file = base.readIfPresent(0..<base.size) else { return }
            let bytes = try file.read(at: 0, count: Int(base.size))
            try takeOver(0..<base.size, bytes, limit: store.room.free)
        }
    }

    /// Writes the base's bytes of a range where the program wrote none, if they are no more than
    /// `limit`; they are the content's own from then on.
    ///
    /// Three steps: what the sidecar says is here is on the disk by then. Else a machine that dies would
    /// leave holes where it says that the base is not to be asked.
    private func takeOver(
        _ range: Range<Int64>,
        _ bytes: [UInt8],
        limit: Int64
    ) throws(ContentError) {
        guard bytes.count == range.upperBound - range.lowerBound else {
            throw .damaged(detail: "\(bytes.count) bytes of the base in place of \(range)")
        }
        let isFilled = try locked { state throws(ContentError) in
            let missing = state.missing(in: range)
            let count = missing.reduce(Int64(0)) { $0 + ($1.upperBound - $1.lowerBound) }
            guard state.cached == nil, count > 0, count <= limit else { return false }
            for gap in missing {
                let first = Int(gap.lowerBound - range.lowerBound)
                let end = Int(gap.upperBound - range.lowerBound)
                try file().write(bytes[first..<end], at: gap.lowerBound)
            }
            return true
        }
        guard isFilled else { return }
        try file().synchronise()
        try locked { state throws(ContentError) in
            guard state.cached == nil else { return }
            let gaps = state.missing(in: range)
            for gap in gaps {
                try state.journal?.append(.written(gap))
                state.own.insert(contentsOf: gap)
                let growth = gap.upperBound - gap.lowerBound
                store.room.addStaged(growth)
                state.charged += growth
            }
            // The next record counts them.
            if !gaps.isEmpty { try state.journal?.synchronise() }
        }
    }
}

/// Small bases are taken over one after the other: each is synchronised, which holds a thread up.
actor CompletionTurn {
    func take(_ body: @Sendable () throws(ContentError) -> Void) throws(ContentError) {
        try body()
    }
}

extension StagedContent.State {
    /// The stretches of a range that are the base's still.
    fileprivate func missing(in range: Range<Int64>) -> [Range<Int64>] {
        let range = range.clamped(to: 0..<baseEnd)
        return range.isEmpty ? [] : Array(own.gaps(in: range))
    }
}
