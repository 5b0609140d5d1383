import Crypto
import Foundation

/// A PKCE verifier and its challenge by S256 (RFC 7636).
struct CodeChallenge {
    let verifier: String
    let challenge: String

    /// A fresh one, of 256 random bits.
    init() {
        verifier = RandomText.make()
        challenge = Data(SHA256.hash(data: Data(verifier.utf8))).base64URL
    }
}

/// Texts that cannot be guessed.
enum RandomText {
    /// 43 characters of Base64url made of 256 random bits.
    static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        return Data((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
            .base64URL
    }
}

extension Data {
    /// Base64 in the alphabet for URLs, without padding (RFC 4648, section 5).
    fileprivate var base64URL: String {
        String(
            base64EncodedString().compactMap { character -> Character? in
                switch character {
                case "+": "-"
                case "/": "_"
                case "=": nil
                default: character
                }
            }
        )
    }
}
