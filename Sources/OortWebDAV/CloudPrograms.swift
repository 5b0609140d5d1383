import Foundation
import OortModel
import OortTransport

/// The parts of Nextcloud and ownCloud that are no WebDAV: who is signed in, what the server can do.
struct CloudPrograms: Sendable {
    let api: WebDAVAPI

    /// Who is signed in; the id is often another than the name to log in with.
    struct Person: Decodable, Sendable {
        var id: String
        var displayname: String?
        var email: String?

        enum CodingKeys: String, CodingKey {
            case id, displayname, email
            case otherName = "display-name"
        }

        init(id: String, displayname: String?, email: String?) {
            self.id = id
            self.displayname = displayname
            self.email = email
        }

        init(from decoder: any Decoder) throws {
            let fields = try decoder.container(keyedBy: CodingKeys.self)
            id = try fields.decode(String.self, forKey: .id)
            displayname =
                try fields.decodeIfPresent(String.self, forKey: .displayname)
                ?? fields.decodeIfPresent(String.self, forKey: .otherName)
            email = try fields.decodeIfPresent(String.self, forKey: .email)
        }
    }

    private struct Envelope<Value: Decodable>: Decodable {
        struct Inner: Decodable { var data: Value }
        var ocs: Inner
    }

    private struct CapabilitiesWire: Decodable {
        struct Version: Decodable { var string: String? }
        struct Core: Decodable { var pollinterval: Int64? }
        struct Chunks: Decodable {
            var maxSize: Int64?
            enum CodingKeys: String, CodingKey { case maxSize = "max_size" }
        }
        struct Tus: Decodable {
            var maxChunkSize: Int64?
            enum CodingKeys: String, CodingKey { case maxChunkSize = "max_chunk_size" }
        }
        struct Files: Decodable {
            var chunks: Chunks?
            var tus: Tus?
            var names: [String]?
            var baseNames: [String]?
            var characters: [String]?
            var extensions: [String]?
            var blacklist: [String]?
            var undelete: Bool?

            enum CodingKeys: String, CodingKey {
                case chunks = "chunked_upload"
                case tus = "tus_support"
                case names = "forbidden_filenames"
                case baseNames = "forbidden_filename_basenames"
                case characters = "forbidden_filename_characters"
                case extensions = "forbidden_filename_extensions"
                case blacklist = "blacklisted_files"
                case undelete
            }
        }
        struct Push: Decodable {
            struct Endpoints: Decodable { var websocket: String? }
            var endpoints: Endpoints?
        }
        struct Parts: Decodable {
            var core: Core?
            var files: Files?
            var push: Push?
            enum CodingKeys: String, CodingKey {
                case core, files
                case push = "notify_push"
            }
        }
        var version: Version?
        var capabilities: Parts
    }

    private func request(_ method: String, _ parts: [String]) -> HTTPRequest {
        HTTPRequest(
            method: method,
            url: api.address.program(["ocs", "v2.php"] + parts) + "?format=json",
            headers: [("OCS-APIRequest", "true"), ("Accept", "application/json")],
            repetition: method == "GET" ? .harmless : .onlyIfNotDone
        )
    }

    private func get<Value: Decodable>(
        _ type: Value.Type,
        _ parts: [String],
        isSignIn: Bool = false
    ) async throws(ProviderError) -> Value {
        let response = try await api.exchange(request("GET", parts), isSignIn: isSignIn)
        guard response.head.status == 200 else {
            throw WebDAVErrors.error(response, about: .item)
        }
        do {
            return try JSONDecoder().decode(Envelope<Value>.self, from: Data(response.body)).ocs
                .data
        } catch {
            throw ProviderError(
                .malformedAnswer,
                detail: "\(parts.joined(separator: "/")) is not what a cloud answers"
            )
        }
    }

    func person(isSignIn: Bool = false) async throws(ProviderError) -> Person {
        if api.dialect == .infinitescale {
            let person = try await InfiniteScaleSpaces(api: api).person(isSignIn: isSignIn)
            return Person(id: person.id, displayname: person.displayName, email: person.mail)
        }
        return try await get(Person.self, ["cloud", "user"], isSignIn: isSignIn)
    }

    func capabilities() async throws(ProviderError) -> CloudCapabilities {
        let wire = try await get(CapabilitiesWire.self, ["cloud", "capabilities"])
        guard let files = wire.capabilities.files else {
            throw ProviderError(.signedOut, detail: "the server answers as to a stranger")
        }
        var result = CloudCapabilities()
        result.version = wire.version?.string
        // ownCloud counts milliseconds.
        result.pollSeconds = wire.capabilities.core?.pollinterval.map {
            $0 >= 1000 ? $0 / 1000 : $0
        }
        let largest = files.chunks?.maxSize ?? files.tus?.maxChunkSize
        result.largestPart = largest.flatMap { $0 > 0 ? $0 : nil }
        func lower(_ names: [String]?) -> [String] { (names ?? []).map { $0.lowercased() } }
        result.refusedNames = lower(files.names ?? files.blacklist)
        result.refusedBaseNames = lower(files.baseNames)
        result.refusedCharacters = files.characters ?? []
        result.refusedEndings = lower(files.extensions)
        // Said by the app that keeps it (`files_trashbin`), where that is switched on.
        result.keepsDeleted = files.undelete ?? false
        return result
    }

    /// Where a Nextcloud with notify_push gives notice of changes; nil where it does not.
    func pushAddress() async throws(ProviderError) -> String? {
        try await get(CapabilitiesWire.self, ["cloud", "capabilities"]).capabilities.push?
            .endpoints?.websocket
    }

    /// A new app password, in place of the person's own password with which the request is signed.
    ///
    /// - Throws: `.noPermission` where it is signed with an app password.
    func newAppPassword() async throws(ProviderError) -> String {
        struct Wire: Decodable { var apppassword: String }
        var request = request("GET", ["core", "getapppassword"])
        request.repetition = .onlyIfNotDone
        let response = try await api.exchange(request, isSignIn: true)
        guard response.head.status == 200 else {
            throw WebDAVErrors.error(response, about: .item)
        }
        guard
            let wire = try? JSONDecoder().decode(
                Envelope<Wire>.self,
                from: Data(response.body)
            ).ocs.data, !wire.apppassword.isEmpty
        else { throw ProviderError(.malformedAnswer, detail: "no app password in the answer") }
        return wire.apppassword
    }

    /// Takes back the app password with which the request itself is signed.
    func removeAppPassword() async throws(ProviderError) {
        let response = try await api.exchange(
            request("DELETE", ["core", "apppassword"]),
            isSignIn: true
        )
        guard (200..<300).contains(response.head.status) else {
            guard response.head.status != 403 else {
                throw ProviderError(
                    .unsupported,
                    detail: "the account was signed in by the person's own password"
                )
            }
            throw WebDAVErrors.error(response, about: .item)
        }
    }
}

extension WebDAVClient {
    static func owner(_ person: CloudPrograms.Person, address: WebDAVAddress) -> PlaceOwner {
        let base = address.origin + "/" + PercentEncoding.path(address.base)
        let folder = address.folder.isEmpty ? "" : "|/" + PercentEncoding.path(address.folder)
        let space = address.space.map { "|\($0.id)" } ?? ""
        return PlaceOwner(
            id: "\(base)|\(person.id)\(space)\(folder)",
            displayName: (person.displayname ?? person.id)
                + (address.space.map { $0.isPersonal ? "" : ", \($0.name)" } ?? ""),
            email: person.email
        )
    }

    func cloudOwner(isSignIn: Bool) async throws(ProviderError) -> PlaceOwner {
        Self.owner(
            try await CloudPrograms(api: api).person(isSignIn: isSignIn),
            address: address
        )
    }

    func removeAppPassword() async throws(ProviderError) {
        do throws(ProviderError) {
            try await CloudPrograms(api: api).removeAppPassword()
        } catch  where error.kind == .signedOut {
            // Taken back already.
        }
    }
}
