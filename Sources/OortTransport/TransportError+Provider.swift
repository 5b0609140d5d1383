public import OortModel

extension TransportError {
    /// The transport's error behind a body that broke off.
    init(bodyFailure error: ProviderError) {
        switch error.kind {
        case .cancelled: self = .cancelled
        case .localContent: self = .localContent(error.detail)
        default: self = .broken(error.detail)
        }
    }
}

extension ProviderError {
    /// What a failed request means to the provider's caller.
    public init(_ error: TransportError) {
        switch error {
        case .unreachable(let detail): self.init(.offline, detail: detail)
        case .broken(let detail): self.init(.outcomeUnknown(retryAfter: nil), detail: detail)
        case .untrusted: self.init(.offline, detail: error.description)
        case .tooLarge: self.init(.malformedAnswer, detail: error.description)
        case .signedOut(let detail): self.init(.signedOut, detail: detail)
        case .clientRefused(let detail): self.init(.clientRefused, detail: detail)
        case .localContent(let detail): self.init(.localContent, detail: detail)
        case .cancelled: self.init(.cancelled, detail: "cancelled")
        }
    }
}
