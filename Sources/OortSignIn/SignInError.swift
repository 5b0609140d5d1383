public import OortTransport

/// Why signing in, refreshing or keeping tokens did not work.
///
/// Holds no secret.
public enum SignInError: Error, Hashable, Sendable {
    /// The person said no.
    case denied
    /// The person pasted nothing of what the browser showed.
    case nothingPasted
    /// The service refused; its own code and words.
    case refused(OAuthRefusal)
    /// There was no answer within the time limit.
    case timedOut
    /// None of the ports to which the service may send the browser back is free.
    case portsTaken([UInt16])
    /// The service has no such way of signing in.
    case unsupported(String)
    /// The answer was not of the protocol.
    case malformedAnswer(String)
    /// The token file is not what it should be.
    case tokenFile(String)
    /// What the token store holds cannot be understood: it was damaged, or another version stored it. It stays
    /// so until the person signs in again.
    case damaged
    /// The credentials lie in the desktop's keyring, and none answers.
    case keyringSilent
    /// The token store failed.
    case store(String)
    /// No answer from the service.
    case transport(TransportError)
}

extension SignInError: CustomStringConvertible {
    /// What happened, in words for the person.
    public var description: String {
        switch self {
        case .denied: "access was denied in the browser"
        case .nothingPasted: "nothing was pasted, so the answer that the browser got is missing"
        case .refused(let refusal):
            "the service refused: \(refusal.code)"
                + (refusal.text.isEmpty ? "" : " (\(refusal.text))")
        case .timedOut: "there was no answer in the browser within the time limit"
        case .portsTaken(let ports):
            "the port that the browser must come back to is in use by another program: "
                + ports.map(String.init).joined(separator: ", ")
        case .unsupported(let what): what
        case .malformedAnswer(let detail): "the service's answer was not understood: \(detail)"
        case .tokenFile(let detail): "the token file cannot be used: \(detail)"
        case .damaged: "what is stored are no credentials that this version of Oort reads"
        case .keyringSilent:
            "the tokens lie in the desktop's keyring, which does not answer: log in to the desktop"
        case .store(let detail): "the token store failed: \(detail)"
        case .transport(let error): "no answer from the service: \(error)"
        }
    }
}
