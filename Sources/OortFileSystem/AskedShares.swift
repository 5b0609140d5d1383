import OortModel
import Synchronization

/// With whom items are shared, as services said when they were asked, for a while: programs ask for the
/// length of an attribute first, and then for the attribute.
final class AskedShares: Sendable {
    /// For how long an answer holds.
    private static let freshness = Duration.seconds(60)
    /// The most answers that are kept.
    private static let most = 256

    private struct Answer {
        var told: TextList
        var asked: ContinuousClock.Instant
    }

    private let answers = Mutex<[Inode: Answer]>([:])

    /// What the service says, or said a short while ago.
    ///
    /// - Throws: as `ShareReporting.sharedWith`; nothing is kept then.
    func sharedWith(
        _ item: Inode,
        by lister: any FolderLister
    ) async throws(ProviderError) -> TextList {
        let began = ContinuousClock.now
        if let known = answers.withLock({ $0[item] }), began - known.asked < Self.freshness {
            return known.told
        }
        let told = try await lister.sharedWith(item)
        answers.withLock { answers in
            if answers.count >= Self.most,
                let eldest = answers.min(by: { $0.value.asked < $1.value.asked })
            {
                answers[eldest.key] = nil
            }
            answers[item] = Answer(told: told, asked: began)
        }
        return told
    }
}
