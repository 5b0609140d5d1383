import Foundation
import OortModel
import Synchronization

extension GoogleDriveSimulator {
    // MARK: Batches

    func batch(_ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        guard
            let parts = MultipartBody.parts(
                of: request.bytes,
                type: request.header("Content-Type") ?? ""
            )
        else { throw Failure(400, "badRequest", "Failed to parse batch request.") }
        guard parts.count <= 100 else {
            throw Failure(400, "badRequest", "The batch request exceeds the maximum of 100 calls.")
        }
        let boundary = "batch_" + state.withLock { $0.random.hex(24) }
        var body: [UInt8] = []
        // Answers may come in any order.
        for part in parts.reversed() {
            body += "--\(boundary)\r\nContent-Type: application/http\r\n".utf8
            if let id = part.header("content-id") {
                let name = id.hasPrefix("<") ? "<response-" + id.dropFirst() : "response-" + id
                body += "Content-ID: \(name)\r\n".utf8
            }
            let answer = answer(toInner: part, of: request)
            var bytes: [UInt8] = []
            if case .bytes(let content) = answer.body { bytes = content }
            body += "\r\nHTTP/1.1 \(answer.status) Status\r\n".utf8
            for field in answer.headers { body += "\(field.name): \(field.value)\r\n".utf8 }
            body += "Content-Length: \(bytes.count)\r\n\r\n".utf8
            body += bytes + Array("\r\n".utf8)
        }
        body += "--\(boundary)--\r\n".utf8
        return SimulatorAnswer(
            status: 200,
            headers: [("Content-Type", "multipart/mixed; boundary=\(boundary)")],
            body: .bytes(body)
        )
    }

    private func answer(
        toInner part: MultipartBody.Part,
        of outer: SimulatorRequest
    ) -> SimulatorAnswer {
        let data = Data(part.body)
        guard let lineEnd = data.firstIndex(of: 10),
            let inner = MultipartBody.headersAndBody(data[data.index(after: lineEnd)...])
        else { return Failure(400, "badRequest", "Bad Request").answer }
        let words = String(decoding: data[..<lineEnd], as: UTF8.self)
            .split(whereSeparator: \.isWhitespace)
        guard words.count >= 2, var target = URLComponents(string: String(words[1])) else {
            return Failure(400, "badRequest", "Bad Request").answer
        }
        target.scheme = nil
        target.host = nil
        var headers = outer.headers
        for field in inner.headers { headers[field.name.lowercased()] = field.value }
        let query = (target.percentEncodedQuery ?? "").split(separator: "&").map { pair in
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map { $0.replacing("+", with: " ").removingPercentEncoding ?? String($0) }
            return (name: sides.first ?? "", value: sides.count > 1 ? sides[1] : "")
        }
        let request = SimulatorRequest(
            method: String(words[0]),
            host: outer.host,
            rawPath: target.percentEncodedPath,
            query: query,
            rawQuery: target.percentEncodedQuery ?? "",
            headers: headers,
            origin: outer.origin,
            bytes: inner.body
        )
        if request.query("alt") == "media" || request.rawPath.hasPrefix("/upload")
            || request.rawPath.hasPrefix("/batch")
        {
            return Failure(400, "badRequest", "Media is not supported in batches.").answer
        }
        do throws(Failure) {
            return try handle(request)
        } catch { return error.answer }
    }

    // MARK: Revisions and sharing

    func revisions(_ id: String, _ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        let mask = try mask(
            request,
            GoogleDriveSchema.revisionList,
            default: "kind,nextPageToken,revisions(kind,id,mimeType,modifiedTime)"
        )
        return try account.withTree { tree throws(Failure) in
            let item = try self.visible(id, in: tree, request)
            let all = item.revisions.map { self.resource(of: $0, in: item) }
            let (page, next) = try Self.page(of: all, request)
            return .json(
                mask.applied(
                    to: JSON.object(
                        ["kind": "drive#revisionList", "revisions": .array(page)]
                            .merging(next) { _, new in new }
                    )
                )
            )
        }
    }

    /// A page of an item's own list, at most three entries: fewer than asked for is allowed, and shows if a
    /// client reads only the first page.
    private static func page(
        of all: [JSON],
        _ request: SimulatorRequest
    ) throws(Failure) -> ([JSON], [String: JSON]) {
        let start: Int
        if let token = request.query("pageToken") {
            guard let number = Int(token), all.indices.contains(number) else {
                throw .invalid("pageToken")
            }
            start = number
        } else {
            start = 0
        }
        let page = Array(all[start...].prefix(3))
        let end = start + page.count
        return (page, end < all.count ? ["nextPageToken": .string(String(end))] : [:])
    }

    private func resource(of revision: SimulatedRevision, in item: SimulatedItem) -> JSON {
        [
            "kind": "drive#revision", "id": .string(revision.id),
            "mimeType": .string(GoogleDriveType.of(item)),
            "modifiedTime": Self.time(revision.serverModifiedTime),
            "size": .string(String(revision.content.size)),
            "md5Checksum": .string(revision.content.md5),
            "keepForever": .bool(isKept(revision.id, item)), "published": false,
            "originalFilename": item.extra["originalFilename"] ?? .string(item.name),
            "lastModifyingUser": person(isMe: true),
        ]
    }

    private func isKept(_ revision: String, _ item: SimulatedItem) -> Bool {
        item.extra["keptRevisions"]?[revision]?.bool == true
    }

    func revision(
        _ revisionID: String,
        of id: String,
        _ request: SimulatorRequest
    ) throws(Failure) -> SimulatorAnswer {
        let item = try account.withTree { tree throws(Failure) in
            try self.visible(id, in: tree, request)
        }
        guard let revision = item.revisions.first(where: { $0.id == revisionID }) else {
            throw Failure(404, "notFound", "Revision not found: \(revisionID).")
        }
        let mask = try mask(
            request,
            GoogleDriveSchema.revision,
            default: "kind,id,mimeType,modifiedTime"
        )
        switch request.method {
        case "GET":
            guard request.query("alt") == "media" else {
                return .json(mask.applied(to: resource(of: revision, in: item)))
            }
            guard isKept(revisionID, item) || item.head?.id == revisionID else {
                throw Failure(
                    403,
                    "download_restricted_for_revision",
                    "The revision is not kept forever and cannot be downloaded."
                )
            }
            return try content(revision.content, type: GoogleDriveType.of(item), request)
        case "PATCH":
            guard let keeps = request.json?["keepForever"]?.bool else {
                throw .invalid("keepForever")
            }
            guard keeps || !isKept(revisionID, item) else {
                throw Failure(
                    400,
                    "illegalKeepForeverModification",
                    "The keepForever field cannot be set to false."
                )
            }
            let changed = account.withTree { tree in
                tree.update(id) { item in
                    item.extra["keptRevisions"] = (item.extra["keptRevisions"] ?? [:])
                        .merging([revisionID: .bool(keeps)])
                }
            }
            return .json(mask.applied(to: resource(of: revision, in: changed ?? item)))
        default:
            throw Failure(
                403,
                "revisionDeletionNotSupported",
                "Revisions cannot be deleted here."
            )
        }
    }

    func permissions(_ id: String, _ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        func everybody(_ role: String) -> JSON {
            [
                "kind": "drive#permission", "id": "anyoneWithLink", "type": "anyone",
                "role": .string(role), "allowFileDiscovery": false,
            ]
        }
        return try account.withTree { tree throws(Failure) in
            let item = try self.visible(id, in: tree, request)
            guard self.role(on: item, in: tree) >= .writer else { throw .noPermission }
            if request.method == "POST" {
                let mask = try self.mask(
                    request,
                    GoogleDriveSchema.permission,
                    default: "kind,id,type,role"
                )
                guard request.json?["type"]?.text == "anyone" else {
                    throw Failure(400, "invalidSharingRequest", "Only links can be shared here.")
                }
                let role = request.json?["role"]?.text ?? ""
                guard ["reader", "commenter", "writer"].contains(role) else {
                    throw .invalid("permission.role")
                }
                guard request.json?["expirationTime"] == nil else {
                    throw Failure(
                        403,
                        "cannotSetExpiration",
                        "Expiration dates are for users and groups only."
                    )
                }
                tree.update(item.id) { $0.extra["isPublic"] = .string(role) }
                return .json(mask.applied(to: everybody(role)))
            }
            let mask = try self.mask(
                request,
                GoogleDriveSchema.permissionList,
                default: "kind,nextPageToken,permissions(kind,id,type,role)"
            )
            var all: [JSON] = [
                [
                    "kind": "drive#permission", "id": .string(permissionID), "type": "user",
                    "role": "owner", "emailAddress": .string(self.account.email),
                    "displayName": .string(self.account.displayName),
                ]
            ]
            all += item.sharees.map { one in
                [
                    "kind": "drive#permission", "id": .string(one.id), "role": "reader",
                    "type": one.isGroup ? "group" : "user", "displayName": .string(one.name),
                    "emailAddress": .string("\(one.id)@example.com"), "deleted": false,
                ]
            }
            if let role = item.extra["isPublic"]?.text { all.append(everybody(role)) }
            let (page, next) = try Self.page(of: all, request)
            return .json(
                mask.applied(
                    to: JSON.object(
                        ["kind": "drive#permissionList", "permissions": .array(page)]
                            .merging(next) { _, new in new }
                    )
                )
            )
        }
    }

    func permission(
        _ permission: String,
        of id: String,
        _ request: SimulatorRequest
    ) throws(Failure) -> SimulatorAnswer {
        guard request.method == "DELETE", permission == "anyoneWithLink" else {
            throw Failure(404, "notFound", "Permission not found: \(permission).")
        }
        try account.withTree { tree throws(Failure) in
            let item = try self.visible(id, in: tree, request)
            tree.update(item.id) { $0.extra["isPublic"] = nil }
        }
        return SimulatorAnswer(status: 204)
    }

    // MARK: OAuth

    func authorizePage(_ request: SimulatorRequest) -> SimulatorAnswer {
        var answer = SimulatedOAuth.authorize(
            request,
            tokens: account.tokens,
            isOffline: request.query("access_type") == "offline"
        )
        if let index = answer.headers.firstIndex(where: { $0.name == "Location" }) {
            let scope =
                (request.query("scope") ?? "").addingPercentEncoding(
                    withAllowedCharacters: .alphanumerics
                ) ?? ""
            answer.headers[index].value +=
                "&iss=https%3A%2F%2Faccounts.google.com&scope=\(scope)&authuser=0&prompt=consent"
        }
        return answer
    }

    func token(_ request: SimulatorRequest) -> SimulatorAnswer {
        let form = request.form
        guard form["client_secret"] != nil || request.header("Authorization") != nil else {
            return .json(
                [
                    "error": "invalid_request",
                    "error_description": "client_secret is missing.",
                ],
                status: 400
            )
        }
        switch SimulatedOAuth.token(request, tokens: account.tokens) {
        case .success(let issued):
            var fields: [String: JSON] = [
                "access_token": .string(issued.access),
                "expires_in": .integer(Int64(issued.expiresIn)),
                "scope": "https://www.googleapis.com/auth/drive", "token_type": "Bearer",
            ]
            // A refresh brings no new refresh token.
            if form["grant_type"] != "refresh_token", let refresh = issued.refresh {
                fields["refresh_token"] = .string(refresh)
            }
            return .json(.object(fields))
        case .failure(let refused):
            let status = refused.reason == .authorizationPending ? 428 : 400
            return .json(refused.json(description: "Bad Request"), status: status)
        }
    }

    func revoke(_ request: SimulatorRequest) -> SimulatorAnswer {
        let token = request.form["token"] ?? request.query("token") ?? ""
        guard account.tokens.revoke(token) else {
            return .json(
                ["error": "invalid_token", "error_description": "Token expired or revoked"],
                status: 400
            )
        }
        return .json([:])
    }

    func deviceCode(_ request: SimulatorRequest) -> SimulatorAnswer {
        let allowed: Set = [
            "https://www.googleapis.com/auth/drive.file",
            "https://www.googleapis.com/auth/drive.appdata", "openid", "email", "profile",
        ]
        let scopes = (request.form["scope"] ?? "").split(separator: " ").map(String.init)
        guard scopes.allSatisfy(allowed.contains) else {
            return .json(
                [
                    "error": "invalid_scope",
                    "error_description": "Invalid device flow scope: \(scopes.first ?? "")",
                ],
                status: 400
            )
        }
        guard
            let answer = SimulatedOAuth.deviceCode(
                request,
                tokens: account.tokens,
                verificationURI: "https://www.google.com/device"
            )
        else { return .json(["error": "invalid_request"], status: 400) }
        return .json(answer)
    }
}
