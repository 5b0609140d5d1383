import Crypto
import Foundation
import OortModel

/// A signature of Version 4 that was found to be good, by which the chunks of a body are signed, too.
///
/// Source: docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html.
struct S3Signature: Sendable {
    /// The key of the day, the region and the service.
    let key: SymmetricKey
    let scope: String
    /// `yyyymmddThhmmssZ`.
    let stamp: String
    /// In lower-case hex.
    let text: String
    /// What the request says of its body.
    let payload: String

    /// The claim of a signature: who signed what, and when.
    private struct Claim {
        var accessKey: String
        var day: String
        var region: String
        var service: String
        var signedNames: [String]
        var signature: String
        var stamp: String
        /// Seconds that a presigned address is good for; nil in a header.
        var validity: Int64?
    }

    /// Checks the signature of a request, in its header or in its address, by the store's clock.
    init(
        checking call: S3Call,
        of account: SimulatedAccount,
        region: String,
        now: Timestamp
    ) throws(S3Failure) {
        let claim = try Self.claim(of: call)
        guard let secret = account.tokens.secret(of: claim.accessKey) else {
            throw S3Failure(
                403,
                "InvalidAccessKeyId",
                "The AWS Access Key Id you provided does not exist in our records.",
                fields: [("AWSAccessKeyId", claim.accessKey)]
            )
        }
        guard account.tokens.standing(of: claim.accessKey) == .valid else {
            throw S3Failure(400, "ExpiredToken", "The provided token has expired.")
        }
        guard
            call.header("x-amz-security-token") == nil,
            call.query("X-Amz-Security-Token") == nil
        else {
            throw S3Failure(400, "InvalidToken", "The provided token is malformed.")
        }
        guard claim.service == "s3", claim.region == region else {
            throw S3Failure(
                400,
                "AuthorizationHeaderMalformed",
                "The authorization header is malformed; the region '\(claim.region)' is wrong; "
                    + "expecting '\(region)'",
                fields: [("Region", region)]
            )
        }
        try Self.checkTime(of: claim, now: now)
        let isPresigned = claim.validity != nil
        payload = isPresigned ? "UNSIGNED-PAYLOAD" : call.header("x-amz-content-sha256") ?? ""
        guard !payload.isEmpty else {
            throw S3Failure(
                400,
                "InvalidRequest",
                "Missing required header for this request: x-amz-content-sha256"
            )
        }
        try Self.checkNames(of: claim, call)
        scope = "\(claim.day)/\(claim.region)/\(claim.service)/aws4_request"
        stamp = claim.stamp
        var key = SymmetricKey(data: Data("AWS4\(secret)".utf8))
        for part in [claim.day, claim.region, claim.service, "aws4_request"] {
            key = SymmetricKey(data: Self.code(part, key))
        }
        self.key = key
        let canonical = Self.canonical(call, claim, payload: payload)
        let toSign = [
            "AWS4-HMAC-SHA256", stamp, scope,
            SHA256.hash(data: Data(canonical.utf8)).hexadecimal,
        ].joined(separator: "\n")
        text = Array(Self.code(toSign, key)).hexadecimal
        guard text == claim.signature else {
            throw S3Failure(
                403,
                "SignatureDoesNotMatch",
                "The request signature we calculated does not match the signature you provided. "
                    + "Check your key and signing method.",
                fields: [
                    ("AWSAccessKeyId", claim.accessKey), ("StringToSign", toSign),
                    ("SignatureProvided", claim.signature), ("CanonicalRequest", canonical),
                ]
            )
        }
    }

    /// The signature of a chunk, or of the trailer, after one before it.
    func signature(ofChunk hash: String, after before: String) -> String {
        let empty = SHA256.hash(data: Data()).hexadecimal
        return signature("AWS4-HMAC-SHA256-PAYLOAD", [before, empty, hash])
    }

    /// The signature of the trailing fields.
    func signature(ofTrailer hash: String, after before: String) -> String {
        signature("AWS4-HMAC-SHA256-TRAILER", [before, hash])
    }

    private func signature(_ kind: String, _ lines: [String]) -> String {
        let text = ([kind, stamp, scope] + lines).joined(separator: "\n")
        return Array(Self.code(text, key)).hexadecimal
    }

    private static func code(_ text: String, _ key: SymmetricKey) -> HMAC<SHA256>.MAC {
        HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key)
    }

    // MARK: What is claimed

    private static func claim(of call: S3Call) throws(S3Failure) -> Claim {
        let header = call.header("Authorization")
        let isPresigned = call.query("X-Amz-Algorithm") != nil
        guard header == nil || !isPresigned else {
            throw .argument("Only one auth mechanism allowed")
        }
        if isPresigned { return try presigned(call) }
        guard let header else { throw .denied() }
        guard let fields = header.dropping(beginning: "AWS4-HMAC-SHA256 ") else {
            throw S3Failure(
                400,
                "InvalidRequest",
                "The authorization mechanism you have provided is not supported. Please use "
                    + "AWS4-HMAC-SHA256."
            )
        }
        var values: [Substring: Substring] = [:]
        for field in fields.parts(between: ",") {
            let trimmed = field.drop { $0 == " " }
            guard let (name, value) = trimmed.cut(atFirst: "=") else { continue }
            values[name] = value
        }
        guard let credential = values["Credential"], let names = values["SignedHeaders"],
            let signature = values["Signature"], let stamp = call.header("x-amz-date")
        else {
            throw S3Failure(
                400,
                "AuthorizationHeaderMalformed",
                "The authorization header is malformed."
            )
        }
        return try claim(credential, names, signature, stamp, validity: nil)
    }

    private static func presigned(_ call: S3Call) throws(S3Failure) -> Claim {
        func malformed(_ message: String) -> S3Failure {
            S3Failure(400, "AuthorizationQueryParametersError", message)
        }
        guard call.query("X-Amz-Algorithm") == "AWS4-HMAC-SHA256" else {
            throw malformed("X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"")
        }
        guard let credential = call.query("X-Amz-Credential"),
            let names = call.query("X-Amz-SignedHeaders"),
            let signature = call.query("X-Amz-Signature"), let stamp = call.query("X-Amz-Date"),
            let validity = call.query("X-Amz-Expires").flatMap({ Int64($0) })
        else { throw malformed("Query-string authentication version 4 requires its parameters") }
        guard (1...604_800).contains(validity) else {
            throw malformed("X-Amz-Expires must be between 1 and 604800 seconds")
        }
        return try claim(credential[...], names[...], signature[...], stamp, validity: validity)
    }

    private static func claim(
        _ credential: Substring,
        _ names: Substring,
        _ signature: Substring,
        _ stamp: String,
        validity: Int64?
    ) throws(S3Failure) -> Claim {
        let parts = credential.parts(between: "/")
        guard parts.count == 5, parts[4] == "aws4_request", stamp.begins(with: String(parts[1]))
        else {
            throw S3Failure(
                400,
                "AuthorizationHeaderMalformed",
                "The credential is malformed; expecting "
                    + "\"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\"."
            )
        }
        return Claim(
            accessKey: String(parts[0]),
            day: String(parts[1]),
            region: String(parts[2]),
            service: String(parts[3]),
            signedNames: names.parts(between: ";").map(String.init),
            signature: String(signature),
            stamp: stamp,
            validity: validity
        )
    }

    private static func checkTime(of claim: Claim, now: Timestamp) throws(S3Failure) {
        guard let time = time(claim.stamp) else {
            throw .denied("AWS authentication requires a valid Date or x-amz-date header")
        }
        if let validity = claim.validity, now.seconds > time.seconds + validity {
            throw .denied("Request has expired")
        }
        let isLate = claim.validity == nil && now.seconds - time.seconds > 15 * 60
        guard !isLate, time.seconds - now.seconds <= 15 * 60 else {
            throw S3Failure(
                403,
                "RequestTimeTooSkewed",
                "The difference between the request time and the current time is too large.",
                fields: [
                    ("RequestTime", claim.stamp), ("ServerTime", now.rfc3339(.seconds)),
                    ("MaxAllowedSkewMilliseconds", "900000"),
                ]
            )
        }
    }

    /// `20130524T000000Z` as a time.
    private static func time(_ stamp: String) -> Timestamp? {
        let digits = Array(stamp.utf8)
        guard digits.count == 16 else { return nil }
        func part(_ range: Range<Int>) -> String { String(decoding: digits[range], as: UTF8.self) }
        return Timestamp(
            rfc3339: "\(part(0..<4))-\(part(4..<6))-\(part(6..<11)):\(part(11..<13)):"
                + part(13..<16)
        )
    }

    /// Whether all is signed that has to be.
    private static func checkNames(of claim: Claim, _ call: S3Call) throws(S3Failure) {
        let unsigned = call.request.headers.keys.filter {
            $0.begins(with: "x-amz-") && !claim.signedNames.contains($0)
        }
        guard claim.signedNames.contains("host"), unsigned.isEmpty else {
            throw S3Failure(
                403,
                "AccessDenied",
                "There were headers present in the request which were not signed",
                fields: [("HeadersNotSigned", unsigned.sorted().joined(separator: ", "))]
            )
        }
    }

    // MARK: What is signed

    /// A part of a query as it is signed, whether it is text or not.
    private static func encoded(_ part: Substring) -> String {
        S3Percent.decoded(part, plusIsSpace: true)
            .map { S3Percent.encoded($0, keepsSlash: false) } ?? String(part)
    }

    private static func canonical(_ call: S3Call, _ claim: Claim, payload: String) -> String {
        let request = call.request
        // Who comes by the port has the host in front of the path, and signed that, too.
        let sent = request.origin.isEmpty ? request.rawPath : "/\(request.host)\(request.rawPath)"
        let path = S3Percent.decoded(sent).map { S3Percent.encoded($0, keepsSlash: true) } ?? sent
        let query = request.rawQuery.split(separator: "&")
            .map { pair -> (name: String, value: String) in
                let (name, value) = pair.cut(atFirst: "=") ?? (pair[...], "")
                return (encoded(name), encoded(value))
            }
            .filter { $0.name != "X-Amz-Signature" }
            .sorted { ($0.name, $0.value) < ($1.name, $1.value) }
            .map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        let fields = claim.signedNames.map { name in
            let value = request.headers[name] ?? ""
            let words = value.split { $0 == " " || $0 == "\t" }.joined(separator: " ")
            return "\(name):\(words)\n"
        }
        return [
            request.method, path, query, fields.joined(),
            claim.signedNames.joined(separator: ";"), payload,
        ].joined(separator: "\n")
    }
}
