import OortModel
import Synchronization

extension DropboxSimulator {
    private func file(
        _ path: String
    ) throws(DropboxFailure) -> (SimulatedItem, SimulatedRevision, JSON) {
        try account.withTree { tree throws(DropboxFailure) in
            do throws(DropboxLookupError) {
                let place = try tree.place(path)
                guard let item = place.item else { throw .notFound }
                guard let revision = place.revision ?? item.head else { throw .notFile }
                return (
                    item, revision, tree.metadata(item, tagged: false, revision: revision)
                )
            } catch { throw error.failure() }
        }
    }

    func download(
        _ json: JSON,
        _ request: SimulatorRequest
    ) throws(DropboxFailure) -> SimulatorAnswer {
        let argument = try DropboxArgument(
            json,
            known: ["path", "rev"],
            place: "HTTP header \"Dropbox-API-Arg\""
        )
        let path = try argument.path("path", .read)
        let (item, revision, metadata) = try file(path)
        if case .nativeDocument = item.kind { throw .tags("unsupported_file") }
        let tag = "W/\"\(revision.id)\""
        if request.method == "GET", request.header("If-None-Match") == tag {
            return SimulatorAnswer(status: 304, headers: [("ETag", tag)])
        }
        return .content(
            revision.content,
            for: request,
            headers: [
                ("Dropbox-API-Result", metadata.headerText), ("ETag", tag),
                ("Original-Content-Length", String(revision.content.size)),
            ]
        )
    }

    func export(_ json: JSON) throws(DropboxFailure) -> SimulatorAnswer {
        let argument = try DropboxArgument(
            json,
            known: ["path", "export_format"],
            place: "HTTP header \"Dropbox-API-Arg\""
        )
        let path = try argument.path("path", .read)
        let (item, revision, metadata) = try file(path)
        guard case .nativeDocument(let type) = item.kind else { throw .tags("non_exportable") }
        let formats = DropboxExports.formats(of: type)
        let format = try argument.optionalText("export_format") ?? formats[0]
        guard formats.contains(format) else { throw .tags("invalid_export_format") }
        let export = SimulatedExport(
            title: item.name,
            text: String(decoding: revision.content.bytes, as: UTF8.self)
        )
        let content = SimulatedContent(export.bytes(as: format))
        let name = item.name.split(separator: ".").dropLast().joined(separator: ".")
        let result: JSON = [
            "export_metadata": [
                "name": .string("\(name).\(format)"), "size": .integer(content.size),
                "export_hash": .string(content.dropboxHash),
            ],
            "file_metadata": metadata,
        ]
        return SimulatorAnswer(
            status: 200,
            headers: [
                ("Content-Type", "application/octet-stream"),
                ("Dropbox-API-Result", result.headerText),
            ],
            body: .content(content, 0..<content.size)
        )
    }

    // MARK: Thumbnails

    private static let pictures: Set<String> = [
        "jpg", "jpeg", "png", "tiff", "tif", "gif", "webp", "ppm", "bmp",
    ]
    private static let sizes: [String: (Int, Int)] = [
        "w32h32": (32, 32), "w64h64": (64, 64), "w128h128": (128, 128), "w256h256": (256, 256),
        "w480h320": (480, 320), "w640h480": (640, 480), "w960h640": (960, 640),
        "w1024h768": (1024, 768), "w2048h1536": (2048, 1536),
    ]

    func thumbnail(
        _ json: JSON,
        isSecondVersion: Bool
    ) throws(DropboxFailure) -> SimulatorAnswer {
        let argument = try DropboxArgument(
            json,
            known: isSecondVersion
                ? [
                    "resource", "format", "size", "mode", "quality", "exclude_media_info",
                    "preserve_transparency",
                ]
                : [
                    "path", "format", "size", "mode", "quality", "exclude_media_info",
                    "preserve_transparency",
                ],
            place: "HTTP header \"Dropbox-API-Arg\""
        )
        let path: String
        if isSecondVersion {
            let resource = try argument.union("resource", tags: ["path", "link"], default: nil)
            guard let text = resource.value["path"]?.text, DropboxPathForms.read.accept(text)
            else { throw .malformed("resource: path: did not match pattern") }
            path = text
        } else {
            path = try argument.path("path", .read)
        }
        let (bytes, metadata) = try picture(path, argument)
        let result: JSON =
            isSecondVersion ? ["file_metadata": metadata] : metadata
        return SimulatorAnswer(
            status: 200,
            headers: [
                ("Content-Type", "application/octet-stream"),
                ("Dropbox-API-Result", result.headerText),
            ],
            body: .bytes(bytes)
        )
    }

    private func picture(
        _ path: String,
        _ argument: DropboxArgument
    ) throws(DropboxFailure) -> ([UInt8], JSON) {
        let format = try argument.union(
            "format",
            tags: ["jpeg", "png", "webp"],
            default: "jpeg"
        ).tag
        let size = try argument.union(
            "size",
            tags: Set(Self.sizes.keys),
            default: "w64h64"
        ).tag
        let (item, _, metadata) = try file(path)
        let pieces = item.name.split(separator: ".")
        guard pieces.count > 1, Self.pictures.contains(pieces[pieces.count - 1].lowercased())
        else { throw .tags("unsupported_extension") }
        guard item.size > 0, item.size <= 20 << 20 else { throw .tags("unsupported_image") }
        let (width, height) = Self.sizes[size] ?? (64, 64)
        let picture = SamplePicture(width: width, height: height, seed: UInt64(item.size))
        return (format == "jpeg" ? picture.jpeg : picture.png, metadata)
    }

    func thumbnailBatch(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(json, known: ["entries"], place: "request body")
        var results: [JSON] = []
        for entry in try argument.list("entries", atMost: 25) {
            let entry = try DropboxArgument(
                entry,
                known: [
                    "path", "format", "size", "mode", "quality", "exclude_media_info",
                    "preserve_transparency",
                ],
                place: "request body: entries"
            )
            let path = try entry.path("path", .read)
            do throws(DropboxFailure) {
                let (bytes, metadata) = try picture(path, entry)
                results.append([
                    ".tag": "success", "metadata": metadata,
                    "thumbnail": .string(Base64.encode(bytes)),
                ])
            } catch {
                guard case .route(let error) = error else { throw error }
                results.append([".tag": "failure", "failure": error])
            }
        }
        return ["entries": .array(results)]
    }

    // MARK: Links

    func getTemporaryLink(
        _ json: JSON,
        _ request: SimulatorRequest
    ) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(json, known: ["path"], place: "request body")
        let (item, revision, metadata) = try file(try argument.path("path", .read))
        if case .nativeDocument = item.kind { throw .tags("unsupported_file") }
        let key = memory.withLock { memory in
            let key = memory.random.hex(48)
            memory.temporaryLinks[key] = (
                revision.content, Timestamp(seconds: Timestamp.now.seconds + 4 * 3600)
            )
            return key
        }
        return [
            "metadata": metadata,
            "link": .string(
                request.url(host: "dl.dropboxusercontent.com", path: "/apitl/1/" + key)
            ),
        ]
    }

    func temporaryLink(_ request: SimulatorRequest) throws(DropboxFailure) -> SimulatorAnswer {
        let key = request.parts.last ?? ""
        guard let (content, expires) = memory.withLock({ $0.temporaryLinks[key] }) else {
            throw .status(404, "Not found")
        }
        guard expires > .now else { throw .status(410, "The link has expired") }
        return .content(content, for: request)
    }

    func createSharedLink(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["path", "settings"],
            place: "request body"
        )
        let path = try argument.path("path", .read)
        var made = DropboxSharedLink(item: "", access: "viewer", hasPassword: false)
        if let settings = argument.fields["settings"] {
            let fields = try DropboxArgument(
                settings,
                known: [
                    "require_password", "link_password", "expires", "audience", "access",
                    "requested_visibility", "allow_download",
                ],
                place: "request body"
            )
            made.expires = try fields.optionalText("expires")
            made.hasPassword = try fields.optionalText("link_password") != nil
            if let visibility = fields.fields["requested_visibility"] {
                made.visibility = visibility.text ?? visibility[".tag"]?.text ?? "public"
            }
            if let access = fields.fields["access"] {
                made.access = access.text ?? access[".tag"]?.text ?? "viewer"
            }
            guard !fields.fields.isEmpty else { throw .tags("settings_error", "invalid_settings") }
            let isPaid = account.withTree { $0.conditions.isPaidPlan }
            guard isPaid || made.expires == nil && !made.hasPassword else {
                throw .tags("settings_error", "not_authorized")
            }
        }
        return try account.withTree { [made] tree throws(DropboxFailure) in
            guard let item = try? tree.place(path).item else { throw .tags("path", "not_found") }
            let known = memory.withLock { memory in
                memory.sharedLinks.first { $0.value.item == item.id }?.key
            }
            if let known {
                throw .route([
                    ".tag": "shared_link_already_exists",
                    "shared_link_already_exists": [
                        ".tag": "metadata", "metadata": link(known, item, tree),
                    ],
                ])
            }
            let url = memory.withLock { memory in
                let url =
                    "https://www.dropbox.com/scl/f\(item.isFolder ? "o" : "i")/"
                    + memory.random.hex(15) + "/link?rlkey=" + memory.random.hex(20) + "&dl=0"
                var link = made
                link.item = item.id
                memory.sharedLinks[url] = link
                return url
            }
            return link(url, item, tree)
        }
    }

    private func link(_ url: String, _ item: SimulatedItem, _ tree: SimulatedTree) -> JSON {
        let made = memory.withLock { $0.sharedLinks[url] }
        var fields: [String: JSON] = [
            ".tag": item.isFolder ? "folder" : "file", "url": .string(url),
            "id": .string(item.id), "name": .string(item.name),
            "path_lower": .string(tree.key(of: tree.path(of: item.id) ?? [])),
            "link_permissions": [
                "can_revoke": true, "allow_download": true,
                "resolved_visibility": [
                    ".tag": .string(
                        made?.hasPassword == true ? "password" : made?.visibility ?? "public"
                    )
                ],
                "link_access_level": [".tag": .string(made?.access ?? "viewer")],
                "require_password": .bool(made?.hasPassword == true),
                "visibility_policies": [], "can_set_expiry": false,
                "can_remove_expiry": false, "can_allow_download": true,
                "can_disallow_download": false, "allow_comments": true,
                "team_restricts_comments": false,
            ],
        ]
        if let expires = made?.expires { fields["expires"] = .string(expires) }
        if let head = item.head {
            fields["client_modified"] = .string(head.modifiedTime.rfc3339(.seconds))
            fields["server_modified"] = .string(head.serverModifiedTime.rfc3339(.seconds))
            fields["rev"] = .string(head.id)
            fields["size"] = .integer(head.content.size)
        }
        return .object(fields)
    }

    func listSharedLinks(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["path", "cursor", "direct_only"],
            place: "request body"
        )
        let path = try argument.optionalText("path")
        let links = memory.withLock { $0.sharedLinks }
        return try account.withTree { tree throws(DropboxFailure) in
            var wanted: String?
            if let path {
                guard let item = try? tree.place(path).item else {
                    throw .tags("path", "not_found")
                }
                wanted = item.id
            }
            let found = links.sorted { $0.key < $1.key }.compactMap { url, made -> JSON? in
                guard wanted == nil || wanted == made.item, let item = tree.item(made.item),
                    !tree.isTrashed(made.item)
                else { return nil }
                return link(url, item, tree)
            }
            // A cursor goes on in the whole account's list only.
            let start = try argument.optionalText("cursor").flatMap { Int($0) } ?? 0
            let page = found.dropFirst(start).prefix(wanted == nil ? Self.linksInPage : .max)
            var answer: [String: JSON] = [
                "links": .array(Array(page)), "has_more": .bool(start + page.count < found.count),
            ]
            if start + page.count < found.count {
                answer["cursor"] = .string(String(start + page.count))
            }
            return .object(answer)
        }
    }

    private static let linksInPage = 10

    private func linked(_ argument: DropboxArgument) throws(DropboxFailure) -> (String, String) {
        let url = try argument.text("url")
        guard let id = memory.withLock({ $0.sharedLinks[url]?.item }) else {
            throw .tags("shared_link_not_found")
        }
        return (url, id)
    }

    func sharedLinkMetadata(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["url", "path", "link_password", "settings", "remove_expiration"],
            place: "request body"
        )
        let (url, id) = try linked(argument)
        return try account.withTree { tree throws(DropboxFailure) in
            guard let item = tree.item(id), !tree.isTrashed(id) else {
                throw .tags("shared_link_not_found")
            }
            return link(url, item, tree)
        }
    }

    func revokeSharedLink(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(json, known: ["url"], place: "request body")
        let (url, _) = try linked(argument)
        memory.withLock { $0.sharedLinks[url] = nil }
        return .null
    }

    func sharedLinkFile(
        _ json: JSON,
        _ request: SimulatorRequest
    ) throws(DropboxFailure) -> SimulatorAnswer {
        let argument = try DropboxArgument(
            json,
            known: ["url", "path", "link_password"],
            place: "HTTP header \"Dropbox-API-Arg\""
        )
        let metadata = try sharedLinkMetadata(.object(argument.fields))
        let (_, id) = try linked(argument)
        guard let content = account.withTree({ $0.item(id)?.head?.content }) else {
            throw .tags("shared_link_is_directory")
        }
        return .content(
            content,
            for: request,
            headers: [("Dropbox-API-Result", metadata.headerText)]
        )
    }
}
