public import Foundation
import OortModel
public import OortSignIn

/// Why there are no keys; the words are for people and hold nothing of a secret.
public struct S3KeysError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong and what to do.
    public let description: String
    /// Whether the program that gives keys failed: it may give some the next time.
    let mayPass: Bool

    init(_ words: String, mayPass: Bool = false) {
        description = words
        self.mayPass = mayPass
    }
}

/// What proves that a request comes from an account of S3.
public struct S3Keys: Hashable, Sendable {
    /// The key's name; empty for nobody, whose requests are not signed.
    public var accessKeyID: String
    /// What requests are signed with.
    public var secretAccessKey: Secret
    /// Goes with keys that end; nil for lasting ones.
    public var sessionToken: Secret?
    /// When the keys end; nil for lasting ones, and where nobody says.
    public var expires: Date?

    /// Keys with all of their parts.
    public init(
        accessKeyID: String,
        secretAccessKey: Secret,
        sessionToken: Secret? = nil,
        expires: Date? = nil
    ) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
        self.expires = expires
    }

    /// Nobody: for buckets that anybody may read.
    public static let anonymous = S3Keys(accessKeyID: "", secretAccessKey: Secret(""))

    /// Whether requests go out unsigned.
    public var isAnonymous: Bool { accessKeyID.isEmpty }

    /// Whether what goes out with each request can be a part of a header field.
    var areSendable: Bool {
        [accessKeyID, sessionToken?.revealed() ?? ""].allSatisfy { text in
            text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        }
    }

    private struct File: Codable {
        var access_key_id: String
        var secret_access_key: String
        var session_token: String?
        /// Seconds since 1970; in no file of a person's.
        var expires_at: Int64?
    }

    /// Reads a key file: `{"access_key_id":…, "secret_access_key":…, "session_token":…}`, the last
    /// one optional.
    public init(keyFile bytes: [UInt8]) throws(S3KeysError) {
        guard let file = try? JSONDecoder().decode(File.self, from: Data(bytes)) else {
            throw S3KeysError(
                "the key file must be JSON like {\"access_key_id\": \"…\", "
                    + "\"secret_access_key\": \"…\", \"session_token\": \"…\"}, the last one only "
                    + "where the keys came with it"
            )
        }
        let id = file.access_key_id.trimmingCharacters(in: .whitespacesAndNewlines)
        let secret = file.secret_access_key.trimmingCharacters(in: .whitespacesAndNewlines)
        let token = file.session_token?.trimmingCharacters(in: .whitespacesAndNewlines)
        guard id.isEmpty == secret.isEmpty else {
            throw S3KeysError(
                "\(id.isEmpty ? "access_key_id" : "secret_access_key") is empty in the key file"
            )
        }
        self.init(
            accessKeyID: id,
            secretAccessKey: Secret(secret),
            sessionToken: token.flatMap { $0.isEmpty ? nil : Secret($0) },
            expires: file.expires_at.map { Date(timeIntervalSince1970: TimeInterval($0)) }
        )
    }

    /// The account's secret as the token store keeps it and `S3Signer` takes it: a key file; of
    /// nobody, one with empty texts.
    public var secret: Secret {
        let file = File(
            access_key_id: accessKeyID,
            secret_access_key: secretAccessKey.revealed(),
            session_token: sessionToken?.revealed(),
            expires_at: expires.map { Timestamp($0).seconds }
        )
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Texts and nothing else: there is nothing that could fail to encode.
        return Secret(
            (try? encoder.encode(file)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        )
    }
}
