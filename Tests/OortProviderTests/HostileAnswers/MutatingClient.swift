import OortModel
import OortTransport
import Synchronization

/// Passes requests on and gives back hostile answers, while that is switched on.
///
/// Requests that an answer makes a provider send outside of this machine are not sent.
final class MutatingClient: HTTPClient {
    fileprivate struct State {
        var mutator: AnswerMutator?
        var mutated = 0
    }

    private let wire: any HTTPClient
    private let state = Mutex(State())

    init(_ wire: any HTTPClient) { self.wire = wire }

    /// Answers are hostile from now on, by this seed; nil lets them be.
    func use(seed: UInt64?) {
        state.withLock { $0.mutator = seed.map(AnswerMutator.init(seed:)) }
    }

    /// Answers that were changed.
    var mutated: Int { state.withLock { $0.mutated } }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        guard request.url.hasPrefix("http://127.0.0.1:") else {
            throw .unreachable("not on this machine")
        }
        let answer = try await wire.stream(request)
        guard state.withLock({ $0.mutator != nil }) else { return answer }
        let bytes: [UInt8]
        do throws(ProviderError) {
            bytes = try await answer.body.collect(atMost: 64 << 20)
        } catch { throw .broken(error.detail) }
        let good = HTTPResponse(head: answer.head, body: bytes)
        return HTTPStreamedResponse(state.withLock { $0.mutate(good) })
    }
}

extension MutatingClient.State {
    mutating func mutate(_ answer: HTTPResponse) -> HTTPResponse {
        guard var mutator else { return answer }
        defer { self.mutator = mutator }
        // Some pass, so that calls of several requests get further than their first.
        guard !mutator.happens(oneIn: 3) else { return answer }
        mutated += 1
        var answer = answer
        if mutator.happens(oneIn: 4), !answer.head.headers.isEmpty {
            let index = mutator.index(below: answer.head.headers.count)
            answer.head.headers[index].value = mutator.field()
        }
        if mutator.happens(oneIn: 8) {
            // Not those that say "wait": how long is not what is tested here.
            let statuses = [
                200, 201, 202, 204, 206, 302, 304, 308, 400, 401, 403, 404, 409, 410, 412, 416,
            ]
            answer.head.status = statuses[mutator.index(below: statuses.count)]
        }
        answer.body = mutator.body(answer.body)
        return answer
    }
}
