import OortModel

/// Ids that the service gives to items before they are made, reserved many at a time.
///
/// Isolation: an actor; all who wait share one call.
actor ReservedIDs {
    private let provider: any Provider
    private var ids: [ItemID] = []
    /// Reserves more ids; ends by itself.
    private var reservation: Task<Result<[ItemID], ProviderError>, Never>?

    private static let count = 1000

    init(_ provider: any Provider) { self.provider = provider }

    /// An id that nobody else gets; nil where the service gives none.
    ///
    /// - Throws: `ProviderError` when the service did not answer.
    func next() async throws(ProviderError) -> ItemID? {
        while true {
            if let id = ids.popLast() { return id }
            let provider = provider
            let task =
                reservation
                ?? Task { () -> Result<[ItemID], ProviderError> in
                    do throws(ProviderError) {
                        return .success(try await provider.reserveIDs(Self.count))
                    } catch { return .failure(error) }
                }
            reservation = task
            let result = await task.value
            guard reservation == task else { continue }
            reservation = nil
            ids = try result.get()
            if ids.isEmpty { return nil }
        }
    }
}
