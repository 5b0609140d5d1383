public import Foundation
import OortProcesses
import OortSignIn
public import OortTransport

extension S3Keys {
    /// The keys in the environment's variables, as AWS's own tools take them.
    public init(environment: [String: String]) throws(S3KeysError) {
        func value(_ name: String) -> String? {
            environment[name].flatMap { $0.isEmpty ? nil : $0 }
        }
        guard let id = value("AWS_ACCESS_KEY_ID"), let secret = value("AWS_SECRET_ACCESS_KEY")
        else {
            throw S3KeysError("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set")
        }
        self.init(
            accessKeyID: id,
            secretAccessKey: Secret(secret),
            sessionToken: value("AWS_SESSION_TOKEN").map { Secret($0) }
        )
    }
}

/// A profile of AWS's tools: in `~/.aws/credentials` and `~/.aws/config`.
///
/// Static keys and `credential_process` are read; sign-ins by SSO and roles come by the latter:
/// `credential_process = aws configure export-credentials --profile NAME`.
///
/// Source: docs.aws.amazon.com/sdkref/latest/guide/file-format.html.
public struct S3Profile: Sendable {
    /// The profile's name.
    public let name: String
    /// `region`, where the profile has it.
    public let region: String?
    /// `endpoint_url`, where the profile has it.
    public let endpoint: String?
    /// `addressing_style`, where the profile has it: whether the bucket is in the path.
    public let isPathStyle: Bool?
    private let keys: S3Keys?
    private let command: String?
    private let environment: [String: String]

    /// Reads a profile from the files that `environment` names, or from those in its `HOME`.
    ///
    /// - Throws: When there is no such profile, or nothing in it that keys come from.
    public init(_ name: String, environment: [String: String]) throws(S3KeysError) {
        let home = environment["HOME"] ?? NSHomeDirectory()
        func sections(_ variable: String, _ file: String) -> [String: [String: String]] {
            let path = environment[variable] ?? "\(home)/.aws/\(file)"
            guard let data = FileManager.default.contents(atPath: path) else { return [:] }
            return Self.sections(String(decoding: data, as: UTF8.self))
        }
        let credentials = sections("AWS_SHARED_CREDENTIALS_FILE", "credentials")[name]
        let configurations = sections("AWS_CONFIG_FILE", "config")
        let configuration =
            configurations["profile \(name)"] ?? (name == "default" ? configurations[name] : nil)
        guard credentials != nil || configuration != nil else {
            throw S3KeysError(
                "there is no profile \(name) in ~/.aws/credentials or ~/.aws/config"
            )
        }
        let values = (configuration ?? [:]).merging(credentials ?? [:]) { $1 }
        self.name = name
        self.environment = environment
        region = values["region"]
        endpoint = values["endpoint_url"]
        isPathStyle = values["s3.addressing_style"].flatMap {
            switch $0 {
            case "path": true
            case "virtual": false
            default: nil
            }
        }
        command = values["credential_process"]
        if let id = values["aws_access_key_id"], let secret = values["aws_secret_access_key"] {
            keys = S3Keys(
                accessKeyID: id,
                secretAccessKey: Secret(secret),
                sessionToken: values["aws_session_token"].map { Secret($0) }
            )
        } else {
            keys = nil
        }
        guard keys != nil || command != nil else {
            throw S3KeysError(
                "the profile \(name) has neither keys nor credential_process; for SSO and roles, "
                    + "give it: credential_process = aws configure export-credentials --profile "
                    + name
            )
        }
    }

    /// The keys as they are now; a `credential_process` is run, without a shell, for at most a
    /// minute.
    public func currentKeys() async throws(S3KeysError) -> S3Keys {
        if let keys { return keys }
        let words = Self.words(of: command ?? "")
        guard let program = words.first,
            let path = program.contains("/") ? program : Program.find(program, environment)
        else {
            throw failure("is not installed")
        }
        let result = await Program(path, Array(words.dropFirst()), environment: environment)
            .outcome(timeLimit: .seconds(60))
        guard let result, result.status == 0 else {
            throw failure("failed")
        }
        guard
            let answer = try? JSONDecoder().decode(ProcessAnswer.self, from: Data(result.output)),
            answer.Version == 1, !answer.AccessKeyId.isEmpty
        else {
            throw failure("gave no keys")
        }
        return S3Keys(
            accessKeyID: answer.AccessKeyId,
            secretAccessKey: Secret(answer.SecretAccessKey),
            sessionToken: answer.SessionToken.map { Secret($0) },
            expires: answer.Expiration.flatMap { try? Date($0, strategy: .iso8601) }
        )
    }

    private func failure(_ words: String) -> S3KeysError {
        S3KeysError("the credential_process of profile \(name) \(words)", mayPass: true)
    }

    private struct ProcessAnswer: Decodable {
        var Version: Int
        var AccessKeyId: String
        var SecretAccessKey: String
        var SessionToken: String?
        var Expiration: String?
    }

    /// Sections with their values; what is indented below `s3 =` has names like `s3.addressing_style`.
    static func sections(_ text: String) -> [String: [String: String]] {
        var result: [String: [String: String]] = [:]
        var section: String?
        var outer: String?
        for line in text.split(omittingEmptySubsequences: true, whereSeparator: \.isNewline) {
            let words = line.trimmingCharacters(in: .whitespaces)
            if words.isEmpty || words.hasPrefix("#") || words.hasPrefix(";") { continue }
            if words.hasPrefix("["), words.hasSuffix("]") {
                let name = words.dropFirst().dropLast().split(separator: " ")
                    .joined(separator: " ")
                section = name
                outer = nil
                result[name, default: [:]] = result[name] ?? [:]
                continue
            }
            guard let section, let equals = words.firstIndex(of: "=") else { continue }
            var name = words[..<equals].trimmingCharacters(in: .whitespaces).lowercased()
            let value = words[words.index(after: equals)...].trimmingCharacters(in: .whitespaces)
            if line.first == " " || line.first == "\t" {
                guard let outer else { continue }
                name = "\(outer).\(name)"
            } else {
                outer = value.isEmpty ? name : nil
            }
            result[section, default: [:]][name] = value
        }
        return result
    }

    /// The words of a command line, with quotes and backslashes as a shell reads them.
    static func words(of text: String) -> [String] {
        var words: [String] = []
        var word: String?
        var quote: Character?
        var isEscaped = false
        for character in text {
            if isEscaped {
                word = (word ?? "") + String(character)
                isEscaped = false
            } else if let open = quote {
                if character == open {
                    quote = nil
                } else if character == "\\", open == "\"" {
                    isEscaped = true
                } else {
                    word = (word ?? "") + String(character)
                }
            } else if character == "\"" || character == "'" {
                quote = character
                word = word ?? ""
            } else if character == "\\" {
                isEscaped = true
            } else if character.isWhitespace {
                if let whole = word { words.append(whole) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        if let word { words.append(word) }
        return words
    }
}

/// The keys of a profile, read anew whenever they end or are refused: whoever keeps the profile
/// exchanges them.
public actor S3ProfileTokens: AccessTokens {
    private let profile: String
    private let environment: [String: String]
    private let now: @Sendable () -> Date
    private var keys: S3Keys?
    /// The reading that is under way: it is shared by all that ask meanwhile.
    private var reading: Task<Result<S3Keys, S3KeysError>, Never>?
    /// When the profile was last read, and what failed then.
    private var last: (time: Date, failure: S3KeysError?)?

    /// Keys are read this long before they end, as AWS's own tools do.
    private static let ahead: TimeInterval = 600
    /// While keys are still good, newer ones are looked for this often at most.
    private static let rest: TimeInterval = 60
    /// After a failure without keys, the program is run this often at most.
    private static let restAfterFailure: TimeInterval = 2

    /// The keys of `profile` by the files that `environment` names.
    public init(
        profile: String,
        environment: [String: String],
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.profile = profile
        self.environment = environment
        self.now = now
    }

    public func token() async throws(TransportError) -> String {
        if let keys, isGood(keys, for: Self.ahead) { return keys.secret.revealed() }
        if let keys, isGood(keys, for: 0), hasRead(within: Self.rest) {
            return keys.secret.revealed()
        }
        do throws(S3KeysError) { return try await read().secret.revealed() } catch {
            // Keys are good until their end, whatever keeps the program from giving newer ones.
            if let keys, isGood(keys, for: 0) { return keys.secret.revealed() }
            throw transportError(error)
        }
    }

    public func refresh(afterRejectionOf rejected: String) async throws(TransportError) -> String {
        if let keys, keys.secret.revealed() != rejected { return keys.secret.revealed() }
        let newer: String
        do throws(S3KeysError) { newer = try await read().secret.revealed() } catch {
            throw transportError(error)
        }
        guard newer != rejected else {
            throw .signedOut("the store refuses the keys of the profile \(profile)")
        }
        return newer
    }

    private func isGood(_ keys: S3Keys, for seconds: TimeInterval) -> Bool {
        (keys.expires ?? .distantFuture) > now().addingTimeInterval(seconds)
    }

    private func hasRead(within seconds: TimeInterval) -> Bool {
        last.map { (0..<seconds).contains(now().timeIntervalSince($0.time)) } ?? false
    }

    /// A program that fails is as a service that cannot be reached: the person need not sign in again.
    private func transportError(_ error: S3KeysError) -> TransportError {
        error.mayPass ? .unreachable(error.description) : .signedOut(error.description)
    }

    private func read() async throws(S3KeysError) -> S3Keys {
        if let failure = last?.failure, hasRead(within: Self.restAfterFailure) { throw failure }
        let task =
            reading
            ?? Task { [profile, environment] () -> Result<S3Keys, S3KeysError> in
                do throws(S3KeysError) {
                    let read = try S3Profile(profile, environment: environment)
                    return .success(try await read.currentKeys())
                } catch { return .failure(error) }
            }
        reading = task
        let result = await task.value
        if reading == task {
            reading = nil
            switch result {
            case .success(let newer):
                keys = newer
                last = (now(), nil)
            case .failure(let failure): last = (now(), failure)
            }
        }
        return try result.get()
    }
}

/// Keys that were given once and stay until others are given.
public struct S3FixedTokens: AccessTokens {
    private let secret: Secret

    /// The account's keys for its whole life.
    public init(_ keys: S3Keys) { secret = keys.secret }

    public func token() async throws(TransportError) -> String { secret.revealed() }

    public func refresh(afterRejectionOf rejected: String) async throws(TransportError) -> String {
        throw .signedOut("the store refuses the account's keys: sign in with newer ones")
    }
}
