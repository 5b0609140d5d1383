import Foundation

/// Folders, and what a file shows.
extension Site {
    /// Entries on a page of a folder.
    private static var perPage: Int { 200 }
    /// Bytes of the largest picture that is shown in place, or stands for itself in a folder.
    private static var largestPicture: Int64 { 64 << 20 }
    private static var largestOwnThumbnail: Int64 { 4 << 20 }
    /// Bytes of the largest file of no known kind that is looked at for text.
    private static var largestUnknown: Int64 { 1 << 20 }

    func files(_ visit: Visit) async throws(Failure) -> HTML {
        let files = try await mountFiles()
        let path = visit.path
        let entry = try await BlockingWork.run { () throws(Failure) in try files.entry(at: path) }
        switch entry.kind {
        case .folder: return try await folder(files, visit)
        case .file: return try await file(entry, files, visit)
        case .link(let target):
            let place = SitePath(link: target, in: path.folder, mountPoint: files.mountPoint)
            let text = String(decoding: target, as: UTF8.self)
            let words: HTML =
                place.map { "<a href=\"/files/\($0.encoded)\">\(text)</a>" }
                ?? "<code>\(text)</code>, which is not in the clouds"
            return page(
                path.name,
                current: "/files/",
                visit,
                "\(crumbs(path))<p>This is a link to \(words).</p>"
            )
        case .other:
            return page(
                path.name,
                current: "/files/",
                visit,
                "\(crumbs(path))<p>This is a pipe or a socket of a program on this machine.</p>"
            )
        }
    }

    // MARK: A folder

    private func folder(_ files: MountFiles, _ visit: Visit) async throws(Failure) -> HTML {
        let path = visit.path
        let wished = visit.request.query["page"].flatMap { Int($0) } ?? 1
        let number = min(max(wished, 1), 1_000_000)
        let listing = try await BlockingWork.run { () throws(Failure) in
            try files.listing(path, from: (number - 1) * Self.perPage, count: Self.perPage)
        }
        let rows = listing.entries.map { row($0, files) }
        let none: HTML = "<p>There is nothing in this folder.</p>"
        let table: HTML = """
            <table class="files"><caption class="hidden">Files and folders</caption><thead><tr>\
            <th scope="col"><span class="hidden">Picture</span></th><th scope="col">Name</th>\
            <th scope="col">Size</th><th scope="col">Modified</th><th scope="col">On this machine</th></tr>\
            </thead><tbody>\(rows)</tbody></table>
            """
        let body: HTML = """
            \(crumbs(path))\(path.names.isEmpty ? nil : folderActions(path, visit))
            \(rows.isEmpty ? none : table)\(pager(number, listing.count, path))
            """
        return page(path.names.isEmpty ? "Files" : path.name, current: "/files/", visit, body)
    }

    private func row(_ entry: MountFiles.Entry, _ files: MountFiles) -> HTML {
        let name = entry.path.name
        let isFolder = entry.kind == .folder
        var picture: HTML = """
            <img src="/sign/\(SiteSign.of(entry).rawValue).svg" alt="" width="32" height="32">
            """
        if showsThumbnail(entry) {
            let stamp = Int64(entry.modified.timeIntervalSince1970 * 1000)
            picture = """
                <img src="/thumbnail/\(entry.path.encoded)?of=\(stamp)" alt="" loading="lazy" width="48" \
                height="48">
                """
        }
        return """
            <tr><td class="picture">\(picture)</td>\
            <th scope="row"><a href="/files/\(entry.path.encoded)">\(name)\(isFolder ? "/" : "")</a></th>\
            <td class="number">\(entry.kind == .file ? size(entry.size) : "")</td>\
            <td class="time">\(StatusText.moment(entry.modified))</td>\
            <td>\(whereabouts(entry) ?? "")</td></tr>
            """
    }

    private func showsThumbnail(_ entry: MountFiles.Entry) -> Bool {
        entry.kind == .file && (entry.hasThumbnail || isOwnThumbnail(entry))
    }

    /// Whether a picture is small and here, so that it stands for itself.
    private func isOwnThumbnail(_ entry: MountFiles.Entry) -> Bool {
        MediaKind.of(entry.path.names.last ?? []).form == .picture
            && (entry.availability == "cached" || entry.availability == "pinned")
            && entry.size <= Self.largestOwnThumbnail
    }

    private func whereabouts(_ entry: MountFiles.Entry) -> String? {
        switch entry.availability {
        case "online": "in the cloud"
        case "cached": "copy"
        case "pinned": "kept"
        case "partly": "in part"
        default: nil
        }
    }

    private func pager(_ number: Int, _ count: Int, _ path: SitePath) -> HTML? {
        let pages = max((count + Self.perPage - 1) / Self.perPage, 1)
        guard pages > 1 else { return nil }
        func link(_ page: Int, _ words: String) -> HTML {
            "<a href=\"/files/\(path.encoded)?page=\(page)\">\(words)</a> "
        }
        return """
            <nav class="pager" aria-label="Pages of this folder">\
            \(number > 1 ? link(1, "First") : nil)\(number > 1 ? link(number - 1, "Previous") : nil)\
            <span>Page \(number) of \(pages), \(StatusText.number(count)) in all</span> \
            \(number < pages ? link(number + 1, "Next") : nil)\(number < pages ? link(pages, "Last") : nil)\
            </nav>
            """
    }

    private func folderActions(_ path: SitePath, _ visit: Visit) -> HTML {
        let back = "/files/\(path.encoded)"
        return """
            <div class="acts">\(keepForm(path, visit, back: back))\
            \(button("Free its copies", "/free", visit, back: back, fields: [("path", path.encoded)]))</div>
            """
    }

    /// A choice of how long something is kept here, with its button.
    func keepForm(_ path: SitePath, _ visit: Visit, back: String) -> HTML {
        button(
            "Keep here",
            "/pin",
            visit,
            back: back,
            fields: [("path", path.encoded)],
            more: """
                <label>How long <select name="hours"><option value="">until I end it</option>\
                <option value="48">two days</option><option value="168">a week</option>\
                <option value="720">a month</option></select></label>
                """
        )
    }

    /// The way to a file or folder, each folder a link.
    func crumbs(_ path: SitePath) -> HTML {
        let steps = path.steps
        let links = steps.enumerated().map { index, step -> HTML in
            index == steps.count - 1
                ? "<li aria-current=\"location\">\(step.name)</li>"
                : "<li><a href=\"/files/\(step.encoded)\">\(step.name)</a></li>"
        }
        let top: HTML = steps.isEmpty ? "" : "<li><a href=\"/files/\">All accounts</a></li>"
        return steps.isEmpty
            ? "" : "<nav class=\"crumbs\" aria-label=\"Folders\"><ol>\(top)\(links)</ol></nav>"
    }

    // MARK: A file

    private func file(
        _ entry: MountFiles.Entry,
        _ files: MountFiles,
        _ visit: Visit
    ) async throws(Failure) -> HTML {
        let path = entry.path
        let back = "/files/\(path.encoded)"
        let body: HTML = """
            \(crumbs(path))
            \(try await preview(entry, files))
            <dl><dt>Size</dt><dd>\(size(entry.size))</dd>\
            <dt>Modified</dt><dd>\(StatusText.moment(entry.modified))</dd>\
            \(whereabouts(entry).map { "<dt>On this machine</dt><dd>\($0)</dd>" as HTML })</dl>
            <div class="acts"><a class="button" href="/content/\(path.encoded)?save=1" \
            download>Save a copy</a>\
            <a class="button" href="/versions/\(path.encoded)">Versions</a>\
            \(keepForm(path, visit, back: back))\
            \(button("Free its copy", "/free", visit, back: back, fields: [("path", path.encoded)]))</div>
            """
        return page(path.name, current: "/files/", visit, body)
    }

    /// What a browser can show of a file without a program.
    func preview(
        _ entry: MountFiles.Entry,
        _ files: MountFiles
    ) async throws(Failure) -> HTML {
        let path = entry.path
        let place: HTML = "/content/\(path.encoded)"
        switch MediaKind.of(path.names.last ?? []).form {
        case .picture where entry.size <= Self.largestPicture:
            return
                "<figure><a href=\"\(place)\"><img src=\"\(place)\" alt=\"\(path.name)\"></a></figure>"
        case .picture: return "<p>The picture is large: <a href=\"\(place)\">show it</a>.</p>"
        case .film:
            // Nothing is fetched before a person wants to see it.
            return """
                <figure><video src="\(place)" controls preload="none" aria-label="\(path.name)"></video></figure>
                """
        case .sound:
            return """
                <figure><audio src="\(place)" controls preload="none" aria-label="\(path.name)"></audio></figure>
                """
        case .pdf:
            return """
                <figure><iframe src="\(place)" title="\(path.name)"></iframe></figure>\
                <p><a href="\(place)">Open it in the whole window</a></p>
                """
        case .text: return try await textPreview(entry, files)
        case .other where entry.size <= Self.largestUnknown:
            return try await textPreview(entry, files)
        case .other: return "<p>A browser shows nothing of this kind of file.</p>"
        }
    }

    private func textPreview(
        _ entry: MountFiles.Entry,
        _ files: MountFiles
    ) async throws(Failure) -> HTML {
        let path = entry.path
        guard entry.size > 0 else { return "<p>The file is empty.</p>" }
        let text = try await BlockingWork.run { () throws(Failure) in
            try files.text(path).map { ShownText(text: $0.text, isWhole: $0.isWhole) }
        }
        guard let text else { return "<p>A browser shows nothing of this kind of file.</p>" }
        let cut: HTML = "<p>This is the beginning; save a copy to see all of it.</p>"
        return """
            <pre tabindex="0" role="region" aria-label="\(path.name)">\(HTML.lines(text.text))</pre>\
            \(text.isWhole ? nil : cut)
            """
    }

    private struct ShownText: Sendable {
        let text: String
        let isWhole: Bool
    }

    // MARK: Bytes

    /// A file's bytes, or a part of them.
    func content(_ visit: Visit) async throws(Failure) -> SiteAnswer {
        let files = try await mountFiles()
        let path = visit.path
        let file = try await BlockingWork.run { () throws(Failure) in try files.open(path) }
        let kind = MediaKind.of(path.names.last ?? [])
        let request = visit.request
        var field = request.field("range")
        // What was read so far is of another content.
        if let condition = request.field("if-range"), condition != file.tag { field = nil }
        let savesOnly = request.query["save"] != nil || !kind.isShown
        let name = PercentCoding.encoded(path.names.last ?? [])
        var answer = SiteAnswer(
            fields: [
                ("Content-Type", kind.type), ("Accept-Ranges", "bytes"), ("ETag", file.tag),
                (
                    "Content-Disposition",
                    "\(savesOnly ? "attachment" : "inline"); filename*=UTF-8''\(name)"
                ),
            ],
            body: .file(file, 0..<file.size)
        )
        answer.policy = kind.policy
        switch ByteRange(field: field, size: file.size) {
        case .whole: break
        case .part(let range):
            answer.status = 206
            answer.body = .file(file, range)
            answer.fields.append(
                ("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.size)")
            )
        case .unsatisfiable:
            answer = .words("The file has \(file.size) bytes.", status: 416)
            answer.fields.append(("Content-Range", "bytes */\(file.size)"))
        }
        return answer
    }

    /// A small picture of a file: the file itself where that is small and here, else the service's own.
    ///
    /// Nothing of the file is fetched for it.
    func thumbnail(_ visit: Visit) async throws(Failure) -> SiteAnswer {
        let files = try await mountFiles()
        let path = visit.path
        let entry = try await BlockingWork.run { () throws(Failure) in try files.entry(at: path) }
        if isOwnThumbnail(entry) {
            var answer = try await content(visit)
            answer.isKept = true
            return answer
        }
        guard entry.hasThumbnail else { return .words("There is no picture of it.", status: 404) }
        let report = try await client.thumbnail(
            ThumbnailRequest(path: path.absolute(below: files.mountPoint), edge: 128)
        )
        guard let type = MediaKind.ofPicture(report.picture) else {
            return .words("The service's picture of it is of no known kind.", status: 404)
        }
        var answer = SiteAnswer(fields: [("Content-Type", type)], body: .data(report.picture))
        answer.isKept = true
        return answer
    }
}
