import Foundation
import OortModel
import Synchronization

/// The control path of a simulator, for tests in other languages and for `oort demo`:
///
/// | request | does |
/// |---|---|
/// | `GET /_oort/counts` | calls and bytes of each route |
/// | `GET /_oort/calls` | the requests in order |
/// | `DELETE /_oort/calls` | empties both |
/// | `GET /_oort/tree?hash=sha256` | every item: path, id, kind, size, hash, times |
/// | `GET /_oort/summary` | how many items the account has, how many of them are files, and their bytes |
/// | `GET /_oort/content?path=/a/b` | the bytes of a file |
/// | `GET /_oort/contents` | every revision of every item, the trash's too: id, path, trashed, hashes |
/// | `POST /_oort/edit` | an edit by somebody else (`SimulatorEdit`) |
/// | `POST /_oort/edits` | a list of such edits, in order |
/// | `PUT /_oort/weather` | latency, bandwidth, rate limit |
/// | `POST /_oort/faults`, `DELETE /_oort/faults` | places a fault; takes all away |
/// | `GET /_oort/faults` | how often each kind of fault happened |
/// | `PUT /_oort/faults/seed` | repeats the faults that have a probability: `{"seed"}` |
/// | `POST /_oort/cursors/lose` | the change feed's cursors are no longer known |
/// | `PUT /_oort/pages` | whether an enumeration's pages are full, for who counts calls: `{"full"}` |
/// | `POST /_oort/sessions/lose` | open upload sessions are no longer known |
/// | `PUT /_oort/habits` | habits of the service's own: of a Nextcloud `{"push"}`, of an OpenCloud `{"processing", "lag"}`, of S3 `S3Simulator.set` |
/// | `POST /_oort/backup` | a Nextcloud says that a backup was restored |
/// | `PUT /_oort/account` | room and conditions: `total_bytes`, `refused_names`, `read_only` (paths), `damaged_contents`, `items_at_once`, `paid_plan`, `client_refusal`; what is left out is as usual |
/// | `GET /_oort/secrets` | every token, code and secret address that was handed out |
/// | `GET /_oort/tokens` | a fresh pair of tokens |
/// | `POST /_oort/tokens/expire`, `…/revoke`, `…/approve` | access tokens expire; all are revoked; device codes are approved |
extension Core {
    func control(_ request: SimulatorRequest) async -> SimulatorAnswer {
        switch (request.method, request.path.dropFirst("/_oort/".count)) {
        case ("GET", "counts"): return .json(countsAsJSON)
        case ("GET", "calls"): return .json(callsAsJSON)
        case ("DELETE", "calls"):
            log.withLock { $0.clear() }
        case ("GET", "tree"): return .json(tree(hash: request.query("hash") ?? "sha256"))
        case ("GET", "summary"): return .json(summary)
        case ("GET", "contents"): return .json(contents)
        case ("GET", "content"):
            let parts = service.parts(ofEditPath: request.query("path") ?? "")
            let content = service.account.withTree { $0.item(at: parts)?.head?.content }
            guard let content else { return .text("no such file", status: 404) }
            return .content(content, for: request)
        case ("POST", "edits"):
            let edits = (request.json?.elements ?? []).compactMap(SimulatorEdit.init)
            guard !edits.isEmpty, edits.count == request.json?.elements?.count else {
                return .text("no such edits", status: 400)
            }
            let ids = service.account.withTree { tree in edits.map { $0.apply(to: &tree) } }
            guard !ids.contains(nil) else {
                return .text("an edit does not fit the tree", status: 409)
            }
            return .json(["ids": .array(ids.map { JSON($0) })])
        case ("POST", "edit"):
            guard let edit = request.json.flatMap(SimulatorEdit.init) else {
                return .text("no such edit", status: 400)
            }
            guard let id = edit.apply(to: service) else {
                return .text("the edit does not fit the tree", status: 409)
            }
            return .json(["id": .string(id)])
        case ("PUT", "weather"):
            guard let weather = request.json.flatMap(Weather.init) else {
                return .text("not a weather", status: 400)
            }
            climate.withLock { $0.weather = weather }
        case ("POST", "faults"):
            guard let rule = request.json.flatMap(FaultRule.init) else {
                return .text("not a fault", status: 400)
            }
            climate.withLock { $0.add(rule) }
        case ("DELETE", "faults"):
            climate.withLock { $0.clearFaults() }
        case ("GET", "faults"):
            return .json(
                .object(climate.withLock { $0.hits }.mapValues { .integer(Int64($0)) })
            )
        case ("PUT", "faults/seed"):
            guard let seed = request.json?["seed"]?.integer else {
                return .text("no seed", status: 400)
            }
            climate.withLock { $0.seed(UInt64(bitPattern: seed)) }
        case ("POST", "cursors/lose"): service.loseCursors()
        case ("PUT", "pages"):
            guard let isFull = request.json?["full"]?.bool else {
                return .text("full pages or not?", status: 400)
            }
            service.account.givesFullPages = isFull
        case ("POST", "sessions/lose"): service.loseUploadSessions()
        case ("PUT", "habits"):
            guard let json = request.json, service.set(habits: json) else {
                return .text("no such habits", status: 400)
            }
        case ("POST", "backup"):
            guard let cloud = service as? NextcloudSimulator else {
                return .text("no Nextcloud", status: 400)
            }
            cloud.habits.fingerprint += "1"
        case ("PUT", "account"):
            guard let json = request.json, set(json) else {
                return .text("not conditions of this account", status: 400)
            }
        case ("GET", "secrets"):
            return .json(.array(service.account.tokens.secrets.sorted().map { .string($0) }))
        case ("GET", "tokens"):
            let issued = service.account.tokens.issue()
            return .json([
                "access_token": .string(issued.access), "refresh_token": JSON(issued.refresh),
                "expires_in": .integer(Int64(issued.expiresIn)),
            ])
        case ("POST", "tokens/expire"): service.account.tokens.expireAccessTokens()
        case ("POST", "tokens/revoke"): service.account.tokens.revokeAll()
        case ("POST", "tokens/approve"): service.account.tokens.approveDeviceCodes()
        default: return .text("unknown control", status: 404)
        }
        return .json([:])
    }

    /// Sets the account's room and conditions; false when they do not fit it.
    private func set(_ json: JSON) -> Bool {
        var conditions = SimulatedConditions()
        conditions.refusedNames = Set(json["refused_names"]?.elements?.compactMap(\.text) ?? [])
        conditions.damagedContents = Int(json["damaged_contents"]?.integer ?? 0)
        conditions.isPaidPlan = json["paid_plan"]?.bool ?? false
        conditions.itemsAtOnce = json["items_at_once"]?.integer.map { Int($0) }
        let paths = json["read_only"]?.elements?.compactMap(\.text) ?? []
        let fits = service.account.withTree { tree in
            for path in paths {
                guard let item = tree.item(at: service.parts(ofEditPath: path)) else {
                    return false
                }
                conditions.readOnly.insert(item.id)
            }
            tree.setConditions(conditions)
            return true
        }
        service.account.totalBytes = json["total_bytes"]?.integer ?? 2_000_000_000_000
        service.account.tokens.clientRefusal = json["client_refusal"]?.text
            .flatMap { SimulatedOAuth.Refusal(rawValue: $0) }
        return fits
    }

    private var countsAsJSON: JSON {
        .object(
            log.withLock { $0.counts }.mapValues {
                [
                    "calls": .integer(Int64($0.calls)), "bytes_in": .integer($0.bytesIn),
                    "bytes_out": .integer($0.bytesOut),
                ]
            }
        )
    }

    private var callsAsJSON: JSON {
        .array(
            log.withLock { $0.calls }.map {
                [
                    "number": .integer(Int64($0.number)), "route": .string($0.route),
                    "method": .string($0.method), "status": .integer(Int64($0.status)),
                    "bytes_in": .integer($0.bytesIn), "bytes_out": .integer($0.bytesOut),
                ]
            }
        )
    }

    /// Everything that the account ever held and has not deleted for good: any content is found here, as a
    /// file, as an older revision or in the trash.
    private var contents: JSON {
        let entries = service.account.withTree { tree in
            tree.allItems.filter { !$0.revisions.isEmpty }.map { item in
                (item, parts: tree.path(of: item.id) ?? [], isTrashed: tree.isTrashed(item.id))
            }
        }
        return .array(
            entries.map { item, parts, isTrashed in
                [
                    "id": .string(item.id),
                    "path": .string(parts.map { "/" + $0 }.joined()),
                    "trashed": .bool(isTrashed),
                    // Oldest first, the last one is current; a new revision of the same content
                    // by the service's own doing is none.
                    "hashes": .array(
                        item.revisions.indices
                            .filter { index in
                                index == 0
                                    || item.revisions[index].content
                                        !== item.revisions[index - 1].content
                            }
                            .map { .string(item.revisions[$0].content.sha256) }
                    ),
                ]
            }
        )
    }

    private var summary: JSON {
        let items = service.account.withTree { $0.descendants(of: $0.rootID) }
        let sizes = items.compactMap { $0.head?.content.size }
        return [
            "items": .integer(Int64(items.count)), "files": .integer(Int64(sizes.count)),
            "bytes": .integer(sizes.reduce(0, +)),
        ]
    }

    private func tree(hash: String) -> JSON {
        let entries = service.account.withTree { tree in
            tree.descendants(of: tree.rootID).map { (tree.path(of: $0.id) ?? [], $0) }
        }
        return .array(
            entries.map { parts, item in
                var fields: [String: JSON] = [
                    "path": .string(parts.map { "/" + $0 }.joined()),
                    "parts": .array(parts.map { .string($0) }),
                    "id": .string(item.id),
                    "parent": JSON(item.parentID),
                    "created": .string(item.createdTime.rfc3339(.milliseconds)),
                    "modified": .string(item.modifiedTime.rfc3339(.milliseconds)),
                    "description": JSON(item.description),
                ]
                switch item.kind {
                case .file: fields["kind"] = "file"
                case .folder: fields["kind"] = "folder"
                case .shortcut(let target):
                    fields["kind"] = "shortcut"
                    fields["target"] = .string(target)
                case .nativeDocument(let type):
                    fields["kind"] = "native"
                    fields["type"] = .string(type.rawValue)
                }
                if let head = item.head {
                    fields["size"] = .integer(head.content.size)
                    fields["revision"] = .string(head.id)
                    fields["revisions"] = .integer(Int64(item.revisions.count))
                    fields["hash"] =
                        switch hash {
                        case "md5": .string(head.content.md5)
                        case "sha1": .string(head.content.sha1)
                        case "dropbox": .string(head.content.dropboxHash)
                        case "none": .null
                        default: .string(head.content.sha256)
                        }
                }
                return .object(fields)
            }
        )
    }
}

extension Weather {
    /// `{"latency_ms", "upload_bytes_per_second", "download_bytes_per_second", "rate_limit":
    /// {"requests", "seconds", "status", "retry_after"}}`; what is left out is fair.
    init?(_ json: JSON) {
        guard json.fields != nil else { return nil }
        self.init()
        latency = .milliseconds(json["latency_ms"]?.integer ?? 0)
        uploadBytesPerSecond = json["upload_bytes_per_second"]?.integer
        downloadBytesPerSecond = json["download_bytes_per_second"]?.integer
        if let limit = json["rate_limit"], let requests = limit["requests"]?.integer {
            rateLimit = RateLimit(
                requests: Int(requests),
                seconds: limit["seconds"]?.number ?? 1,
                status: Int(limit["status"]?.integer ?? 429),
                retryAfterSeconds: Int(limit["retry_after"]?.integer ?? 1)
            )
        }
    }
}

extension FaultRule {
    /// `{"route", "fault": "status" | "done_but_status" | "done_but_no_answer" | "no_answer" |
    /// "cut_upload" | "cut_download" | "truncated" | "stall" | "html" | "broken_text" |
    /// "expired_token", "status",
    /// "retry_after", "bytes", "seconds", "skipping", "times" (null: without end),
    /// "probability"}`.
    init?(_ json: JSON) {
        guard let route = json["route"]?.text, let name = json["fault"]?.text else { return nil }
        let status = Int(json["status"]?.integer ?? 503)
        let bytes = Int(json["bytes"]?.integer ?? 0)
        let fault: Fault
        switch name {
        case "status":
            fault = .status(status, retryAfterSeconds: json["retry_after"]?.integer.map(Int.init))
        case "done_but_status": fault = .doneButStatus(status)
        case "done_but_no_answer": fault = .doneButNoAnswer
        case "no_answer": fault = .noAnswer
        case "cut_upload": fault = .cutUpload(afterBytes: bytes)
        case "cut_download": fault = .cutDownload(afterBytes: bytes)
        case "truncated": fault = .truncatedAnswer(bytes: bytes)
        case "stall": fault = .stall(seconds: json["seconds"]?.number ?? 30)
        case "html": fault = .html(status: status)
        case "broken_text": fault = .brokenText
        case "expired_token": fault = .expiredToken
        default: return nil
        }
        self.init(
            fault,
            at: route,
            skipping: Int(json["skipping"]?.integer ?? 0),
            times: json["times"] == .null ? nil : Int(json["times"]?.integer ?? 1),
            probability: json["probability"]?.number ?? 1
        )
    }
}
