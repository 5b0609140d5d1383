import Foundation

/// What is kept here, what was deleted, what a file had.
extension Site {
    /// The most entries of a trash that a page shows.
    private static var mostTrashed: Int { 500 }

    func pins(_ visit: Visit) async throws(Failure) -> HTML {
        let pins = try await client.pins()
        let top = try await mountPoint()
        let rows = pins.map { pinRow($0, top, visit) }
        let none: HTML = """
            <p>Nothing is pinned. A file's or a folder's page has a button that keeps it here, also without a \
            network.</p>
            """
        let table: HTML = """
            <table class="files"><caption class="hidden">What is kept on this machine</caption><thead><tr>\
            <th scope="col">Name</th><th scope="col">Until</th><th scope="col">How much is here</th>\
            <th scope="col"><span class="hidden">What to do</span></th></tr></thead>\
            <tbody>\(rows)</tbody></table>
            """
        let body: HTML = """
            \(rows.isEmpty ? none : table)
            <h2>Room</h2><p>Copies that are not kept may go: the files stay, and are fetched when they are \
            read.</p><div class="acts">\
            \(button("Free all other copies", "/free", visit, back: "/pins", fields: [("all", "1")]))</div>
            """
        return page("Kept here", current: "/pins", visit, body)
    }

    private func pinRow(_ pin: PinReport, _ top: String, _ visit: Visit) -> HTML {
        let progress = pin.progress
        let end = pin.until.map { StatusText.moment($0) } ?? "somebody ends it"
        guard let path = SitePath(pin.path, below: top) else { return "" }
        let refused = progress.refused.prefix(5).map { file -> HTML in
            let name = SitePath(file.path, below: top)?.shown ?? file.path
            return "<li class=\"warning\">\(name)\(file.detail.map { ": \($0)" } ?? "")</li>"
        }
        let act = button(
            "End",
            "/unpin",
            visit,
            back: "/pins",
            label: "No longer keep \(path.name)",
            fields: [("path", path.encoded)]
        )
        return """
            <tr><th scope="row"><a href="/files/\(path.encoded)">\(path.shown)</a></th><td>\(end)</td>\
            <td><label><progress max="\(max(progress.bytes, 1))" \
            value="\(min(max(progress.bytesHere, 0), max(progress.bytes, 1)))"></progress> \
            \(PinText.progress(progress))</label>\
            \(refused.isEmpty ? nil : "<ul>\(refused)</ul>")</td>\
            <td>\(act)</td></tr>
            """
    }

    // MARK: Trash

    func trash(_ visit: Visit) async throws(Failure) -> HTML {
        let report = try await client.trash(TrashRequest(path: nil))
        let top = try await mountPoint()
        let rows = report.entries.prefix(Self.mostTrashed).map { entry -> HTML in
            let place =
                entry.path.map { SitePath($0, below: top)?.shown ?? $0 }
                ?? "\(entry.account): its folder is not there any more"
            let act = button(
                "Restore",
                "/restore",
                visit,
                back: "/trash",
                label: "Restore \(entry.name)",
                fields: [("id", entry.id)]
            )
            return """
                <tr><th scope="row">\(entry.name)</th><td>\(place)</td>\
                <td class="number">\(entry.size.map(size) ?? entry.kind ?? "")</td>\
                <td class="time">\(entry.deleted.map { StatusText.moment($0) } ?? "not known")</td>\
                <td>\(act)</td></tr>
                """
        }
        let notes = report.notes.map { "<p>\($0)</p>" as HTML }
        let none: HTML = "<p>The trash is empty.</p>"
        let table: HTML = """
            <table class="files"><caption class="hidden">What was deleted</caption><thead><tr>\
            <th scope="col">Name</th><th scope="col">Where it lay</th><th scope="col">Size</th>\
            <th scope="col">Deleted</th><th scope="col"><span class="hidden">What to do</span></th></tr>\
            </thead><tbody>\(rows)</tbody></table>
            """
        let isCut = report.isCut || report.entries.count > Self.mostTrashed
        let more: HTML =
            "<p>There is more: <code>oort trash PATH</code> lists what lay in a folder.</p>"
        let body: HTML = """
            \(notes)\(rows.isEmpty ? (notes.isEmpty ? none : nil) : table)\(isCut ? more : nil)
            """
        return page("Trash", current: "/trash", visit, body)
    }

    // MARK: Versions

    func versions(_ visit: Visit) async throws(Failure) -> HTML {
        let path = visit.path
        let top = try await mountPoint()
        let report = try await client.versions(
            VersionsRequest(path: path.absolute(below: top), version: nil)
        )
        let rows = report.versions.map { versionRow($0, path, visit) }
        let none: HTML = "<p>The service keeps no version of it.</p>"
        let table: HTML = """
            <table class="files"><caption class="hidden">Versions</caption><thead><tr>\
            <th scope="col">Modified</th><th scope="col">Size</th><th scope="col">By</th>\
            <th scope="col"><span class="hidden">What to do</span></th></tr></thead>\
            <tbody>\(rows)</tbody></table>
            """
        let body: HTML = """
            \(crumbs(path))<p><a href="/files/\(path.encoded)">The file as it is</a></p>\
            \(report.cost.map { "<p>\($0)</p>" as HTML })
            \(rows.isEmpty ? none : table)
            """
        return page("Versions of \(path.name)", current: "/files/", visit, body)
    }

    private func versionRow(
        _ version: VersionsReport.Version,
        _ path: SitePath,
        _ visit: Visit
    ) -> HTML {
        let time = version.modified.map { StatusText.moment($0) } ?? "not known"
        let fields = [("path", path.encoded), ("version", version.id)]
        let back = "/versions/\(path.encoded)"
        let restore = button(
            "Restore",
            "/restore-version",
            visit,
            // What came back may still be on its way to the cloud.
            back: "/files/\(path.encoded)",
            label: "Restore the version of \(time)",
            fields: fields
        )
        let save = button(
            "Save a copy",
            "/read-version",
            visit,
            back: back,
            label: "Save a copy of the version of \(time)",
            fields: fields
        )
        let acts: HTML =
            version.isCurrent
            ? "what the file has now" : "<div class=\"acts\">\(restore)\(save)</div>"
        return """
            <tr><th scope="row">\(time)</th><td class="number">\(version.size.map(size) ?? "not known")</td>\
            <td>\(version.author ?? "")</td><td>\(acts)</td></tr>
            """
    }
}
