public import OortTransport

/// A client whose caller is cancelled as soon as a request of one method is answered, as a person does who
/// leaves in the middle.
public struct CancellingClient: HTTPClient {
    private let next: any HTTPClient
    private let method: String

    /// Cancels after each answer to this method.
    public init(_ next: any HTTPClient, after method: String) {
        (self.next, self.method) = (next, method)
    }

    public func stream(
        _ request: HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        let response = try await next.stream(request)
        if request.method == method { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
        return response
    }
}
