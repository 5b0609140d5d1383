import Foundation
import OortModel
import OortTransport
import Synchronization

extension WebDAVAbilities {
    /// Tries what a plain server can do, in a folder that is made for it and removed afterwards.
    ///
    /// - Throws: What a request without an answer throws, and one that the server could not carry out at
    ///   present (no room, too many requests, a gateway's failure); a refusal is a finding.
    static func probed(
        http: any HTTPClient,
        address: WebDAVAddress
    ) async throws(ProviderError) -> WebDAVAbilities {
        for prefix in [".", ""] {
            let folder = RemotePath([prefix + "oort-probe-" + UUID().uuidString])
            var probe = WebDAVProbe(http: http, address: address, folder: folder)
            do throws(ProviderError) {
                try await probe.run()
            } catch {
                await probe.remove()
                throw error
            }
            await probe.remove()
            // Where names with a dot are refused, those without may be taken.
            if !probe.found.isReadOnly || prefix.isEmpty { return probe.found }
        }
        return WebDAVAbilities()
    }
}

/// One trial of a server; the findings are in `found` afterwards.
private struct WebDAVProbe {
    let client: WebDAVClient
    let folder: RemotePath
    var found = WebDAVAbilities()

    private var api: WebDAVAPI { client.api }

    init(http: any HTTPClient, address: WebDAVAddress, folder: RemotePath) {
        client = WebDAVClient(
            http: http,
            address: address,
            dialect: .plain,
            abilities: WebDAVAbilities()
        )
        self.folder = folder
    }

    mutating func run() async throws(ProviderError) {
        try await lookForQuota()
        let made = try await exchange(api.request("MKCOL", folder, isFolder: true))
        found.server = made.head.header("Server").map { String($0.prefix(80)) }
        guard (200..<300).contains(made.head.status) else {
            found.isReadOnly = true
            return
        }
        guard try await put("a", "1").isGood else {
            found.isReadOnly = true
            return
        }
        try await tryFolderTimes()
        try await tryTags()
        try await tryTimes()
        try await tryMoves()
        try await tryReading()
        try await tryNames()
        try await tryCutUploads()
        try await tryGuards()
        try await tryMovedRevisions()
        found.wantsDestinationPath = client.memory.wantsDestinationPath
        // Content that cannot be brought to its place whole is not sent at all.
        if !found.sendsDirectly, !found.movesOntoFiles { found.isReadOnly = true }
    }

    /// Removes the folder; what stays when that fails does no harm.
    func remove() async {
        // Also of a sign-in that was cancelled, whose own requests end at once.
        let removal = Task { [api, folder] in
            _ = try? await api.exchange(api.request("DELETE", folder, isFolder: true))
        }
        await removal.value
    }

    // MARK: Requests

    private func put(
        _ name: String,
        _ text: String,
        headers: [WebDAVAPI.Header] = []
    ) async throws(ProviderError) -> HTTPResponseHead {
        var request = api.request(
            "PUT",
            folder.appending(name),
            isFolder: false,
            headers: [("Content-Type", "text/plain")] + headers
        )
        request.body = .bytes(Array(text.utf8))
        return try await exchange(request).head
    }

    /// The answer to a trial, where it says something of the server.
    private func exchange(_ request: HTTPRequest) async throws(ProviderError) -> HTTPResponse {
        let response = try await api.exchange(request)
        guard Self.isPassing(response.head.status) else { return response }
        throw WebDAVErrors.error(response, about: .parent)
    }

    /// Whether a status is of the moment: what follows from it would be kept with the account for good.
    private static func isPassing(_ status: Int) -> Bool {
        [408, 429, 502, 503, 504, 507, 509].contains(status)
    }

    /// What a listing says of a file; nil where it is not there.
    private func look(_ name: String) async throws(ProviderError) -> DAVResponse? {
        let path = folder.appending(name)
        do throws(ProviderError) {
            let (own, _, _) = try await client.ownEntry(of: path, depth: 0, isFolder: false)
            return own.isSound ? own : nil
        } catch  where error.kind == .notFound || error.kind == .noPermission {
            return nil
        }
    }

    private func size(_ name: String) async throws(ProviderError) -> Int64? {
        try await look(name)?.text(.dav("getcontentlength")).flatMap { Int64($0) }
    }

    private func tag(_ name: String) async throws(ProviderError) -> String? {
        WebDAVEntries.tag(try await look(name)?.text(.dav("getetag")))
    }

    private func time(_ name: String) async throws(ProviderError) -> Int64? {
        try await look(name)?.text(.dav("getlastmodified")).flatMap { HTTPDate.parse($0) }?.seconds
    }

    /// Whether a move or copy was done; nil where it was refused because of what is there.
    private func relocate(
        _ method: String,
        _ old: String,
        _ new: [String],
        replacing: Bool = false
    ) async throws(ProviderError) -> Bool? {
        do throws(ProviderError) {
            try await client.relocate(
                method,
                .file,
                from: folder.appending(old),
                to: RemotePath(folder.parts + new),
                replacing: replacing
            )
            return true
        } catch  where error.kind == .preconditionFailed {
            return nil
        } catch {
            switch error.kind {
            case .cancelled, .offline, .rateLimited, .quotaExceeded: throw error
            default: return false
            }
        }
    }

    // MARK: Trials

    private mutating func lookForQuota() async throws(ProviderError) {
        let (responses, _) = try await api.look(
            at: api.address.url(.root, isFolder: true),
            depth: 0,
            properties: [.dav("quota-used-bytes"), .dav("quota-available-bytes")]
        )
        let own = client.entries.sorted(responses, of: .root).own
        found.saysQuota = own?.text(.dav("quota-used-bytes")).flatMap { Int64($0) } != nil
    }

    private mutating func tryFolderTimes() async throws(ProviderError) {
        var dated = true
        for path in [.root, folder] {
            let (own, _, _) = try await client.ownEntry(of: path, depth: 0, isFolder: true)
            let time = own.text(.dav("getlastmodified")).flatMap { HTTPDate.parse($0) }
            dated = dated && time != nil
        }
        found.datesFolders = dated
    }

    private mutating func tryTags() async throws(ProviderError) {
        // Proven only by two contents of one second and one size: a slow line proves nothing.
        for _ in 0..<5 {
            _ = try await put("a", "12")
            guard let first = try await look("a"),
                let tag = WebDAVEntries.tag(first.text(.dav("getetag")))
            else { return }
            found.tags = .coarse
            // Within one tick of a disk's clock (10 ms at most) even a fine tag may stay as it was.
            try await client.pause(.milliseconds(20))
            _ = try await put("a", "34")
            guard let second = try await look("a") else { return }
            let isOneSecond =
                first.text(.dav("getlastmodified")) == second.text(.dav("getlastmodified"))
            guard isOneSecond else { continue }
            if WebDAVEntries.tag(second.text(.dav("getetag"))) != tag { found.tags = .fine }
            return
        }
    }

    private mutating func tryTimes() async throws(ProviderError) {
        _ = try await put("a", "12", headers: [("X-OC-Mtime", "1234567890")])
        found.takesTimeWithUpload = try await time("a") == 1_234_567_890
        do throws(ProviderError) {
            let moment = Timestamp(seconds: 1_234_500_000)
            try await api.setTime(moment, of: folder.appending("a"), tag: nil)
            found.takesTimeLater = try await time("a") == moment.seconds
        } catch  where error.kind != .cancelled && error.kind != .offline {
            // Not every server has the method at all.
            found.takesTimeLater = false
        }
    }

    private mutating func tryMoves() async throws(ProviderError) {
        _ = try await put("a", "12")
        _ = try await put("b", "1234")
        found.guardsMoves = try await relocate("MOVE", "a", ["b"]) == nil
        let stayed = try await size("a") == 2
        let kept = try await size("b") == 4
        found.guardsMoves = found.guardsMoves && stayed && kept
        let moved = try await relocate("MOVE", "a", ["missing", "x"])
        found.wantsParentOfMove = moved != true
        _ = try await put("a", "123456")
        _ = try await put("b", "1234")
        _ = try await relocate("MOVE", "a", ["b"], replacing: true)
        let arrived = try await size("b") == 6
        let left = try await size("a") == nil
        found.movesOntoFiles = arrived && left
        _ = try await put("d", "1")
        let isWhole = try await relocate("MOVE", "d", ["e;f?g"])
        let isAtPlace = try await size("e;f?g") == 1
        found.cutsDestinations = isWhole == true && !isAtPlace
        _ = try await relocate("COPY", "b", ["c"])
        let copied = try await size("c") == 6
        let source = try await size("b") == 6
        found.copies = copied && source
    }

    private mutating func tryReading() async throws(ProviderError) {
        _ = try await put("b", "123456")
        let response = try await api.exchange(
            api.request(
                "GET",
                folder.appending("b"),
                isFolder: false,
                headers: [("Range", "bytes=2-3"), ("Accept-Encoding", "identity")],
                repetition: .harmless
            )
        )
        found.sendsRanges = response.head.status == 206 && response.body == Array("34".utf8)
        let tag = try await tag("b")
        found.sendsTags = tag != nil && WebDAVEntries.tag(response.head.header("ETag")) == tag
    }

    private mutating func tryNames() async throws(ProviderError) {
        if try await put("case", "1").isGood {
            do throws(ProviderError) { found.ignoresCase = try await look("CASE") != nil } catch
                where error.kind == .nameRefused
            {
                // It answers with the name that the file has.
                found.ignoresCase = true
            }
        }
        if try await put("e\u{301}", "1").isGood {
            found.composesNames = try await look("\u{E9}") != nil
        }
        _ = try await put(".dot", "1")
        let (_, _, sorted) = try await client.ownEntry(of: folder, depth: 1, isFolder: true)
        found.listsDotNames = sorted.children.contains { $0.name == ".dot" }
    }

    private mutating func tryCutUploads() async throws(ProviderError) {
        _ = try await put("b", "1234")
        var survives = true
        for name in ["b", "cut"] {
            let content = CutContent()
            var request = api.request(
                "PUT",
                folder.appending(name),
                isFolder: false,
                headers: [("Content-Type", "text/plain")]
            )
            request.body = .content(content, 0..<content.size)
            request.weight = .bulk
            request.onSent = { content.sent($0) }
            do throws(ProviderError) {
                _ = try await api.exchange(request)
            } catch  where error.kind == .cancelled {
                throw error
            } catch {}
            // Where nothing went out, nothing is proven.
            guard content.wasCut else { return }
            try await client.pause(.milliseconds(200))
            let left = try await size(name)
            survives = survives && left == (name == "b" ? 4 : nil)
        }
        found.survivesCutUploads = survives
    }

    private mutating func tryGuards() async throws(ProviderError) {
        _ = try await put("b", "1234")
        let bogus: WebDAVAPI.Header = ("If-Match", "\"oort-bogus\"")
        let creation = try await put("b", "12345", headers: [("If-None-Match", "*")]).status == 412
        let replacement = try await put("b", "12345", headers: [bogus]).status == 412
        let kept = try await size("b") == 4
        found.guardsCreation = creation && kept
        // A file's tag may be weak, and so no guard, for its first second.
        try await client.pause(WebDAVClient.youth + .milliseconds(200))
        if let tag = try await tag("b") {
            let right = try await put("b", "12345", headers: [("If-Match", "\"\(tag)\"")]).isGood
            found.guardsReplacement = replacement && kept && right
        }
        let deletion = try await api.exchange(
            api.request("DELETE", folder.appending("b"), isFolder: false, headers: [bogus])
        )
        let isThere = try await size("b") != nil
        found.guardsDeletion = deletion.head.status == 412 && isThere
    }

    /// Moves a file of some seconds ago, whose time shows whether it was copied.
    private mutating func tryMovedRevisions() async throws(ProviderError) {
        let old = folder.appending("case")
        let new = folder.appending("sub").appending("case")
        guard try await look("case") != nil else { return }
        let before = try await client.unconfirmedEntry(at: old)
        _ = try await api.exchange(api.request("MKCOL", folder.appending("sub"), isFolder: true))
        guard try await relocate("MOVE", "case", ["sub", "case"]) == true else { return }
        found.keepsMovedRevisions =
            try await client.unconfirmedEntry(at: new).revision == before.revision
    }
}

extension HTTPResponseHead {
    fileprivate var isGood: Bool { (200..<300).contains(status) }
}

/// A content that breaks off in the middle, when its beginning is on its way.
private final class CutContent: ContentSource {
    private static let given: Int64 = 256 << 10
    let size: Int64 = 512 << 10
    private let state = Mutex((sent: Int64(0), wasCut: false))

    /// Whether the server can have got a beginning.
    var wasCut: Bool { state.withLock { $0.wasCut } }

    func sent(_ bytes: Int64) { state.withLock { $0.sent = max($0.sent, bytes) } }

    func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
        if offset + Int64(count) <= Self.given { return [UInt8](repeating: 120, count: count) }
        for _ in 0..<400 where state.withLock({ $0.sent < Self.given / 2 }) { await Self.wait(50) }
        await Self.wait(500)
        state.withLock { $0.wasCut = $0.sent >= Self.given / 2 }
        throw ProviderError(.localContent, detail: "cut on purpose")
    }

    private static func wait(_ milliseconds: Int) async {
        try? await Task.sleep(for: .milliseconds(milliseconds))
    }
}
