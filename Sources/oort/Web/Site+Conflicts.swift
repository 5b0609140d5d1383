import Foundation

/// Files that were changed on both sides, side by side.
extension Site {
    /// Bytes of the largest text that is compared, and the most lines of it.
    private static var largestText: Int64 { 64 << 10 }
    private static var mostLines: Int { 2000 }

    func conflicts(_ visit: Visit) async throws(Failure) -> HTML {
        let conflicts = try await client.conflicts()
        let files = try await mountFiles()
        var parts: [HTML] = []
        for conflict in conflicts { parts.append(await part(conflict, files, visit)) }
        let body: HTML = """
            <p>Where a file was changed here and in the cloud, the cloud’s version keeps the name, and yours \
            lies beside it. Choose, or move or delete either file.</p>
            \(parts.isEmpty ? "<p>There is no conflict.</p>" : HTML(parts))
            """
        return page("Conflicts", current: "/conflicts", visit, body)
    }

    private func part(
        _ conflict: ConflictReport,
        _ files: MountFiles,
        _ visit: Visit
    ) async -> HTML {
        guard let theirs = SitePath(conflict.theirs.path, below: files.mountPoint),
            let mine = SitePath(conflict.mine.path, below: files.mountPoint)
        else { return "" }
        func choice(_ keep: ResolveCommand.Choice, _ words: String) -> HTML {
            button(
                words,
                "/resolve",
                visit,
                back: "/conflicts",
                label: "\(words): \(theirs.name)",
                fields: [("id", "\(conflict.id)"), ("keep", keep.rawValue)]
            )
        }
        let compared = await compared(conflict, theirs, mine, files)
        return """
            <article class="card conflict"><h2>\(theirs.shown)</h2>
            \(compared)
            <div class="acts">\(choice(.theirs, "Keep the cloud’s"))\(choice(.mine, "Keep mine"))\
            \(choice(.both, "Keep both"))</div></article>
            """
    }

    private func compared(
        _ conflict: ConflictReport,
        _ theirs: SitePath,
        _ mine: SitePath,
        _ files: MountFiles
    ) async -> HTML {
        let heads: HTML = """
            <th scope="col">In the cloud: \(about(conflict.theirs))<br>\
            <a href="/files/\(theirs.encoded)">\(theirs.name)</a></th>\
            <th scope="col">Mine: \(about(conflict.mine))<br>\
            <a href="/files/\(mine.encoded)">\(mine.name)</a></th>
            """
        var rows: HTML = ""
        if MediaKind.of(theirs.names.last ?? []).form == .picture {
            rows = """
                <tr><td><img src="/content/\(theirs.encoded)" alt="The cloud’s picture"></td>\
                <td><img src="/content/\(mine.encoded)" alt="My picture"></td></tr>
                """
        } else if let left = await text(conflict.theirs, theirs, files),
            let right = await text(conflict.mine, mine, files)
        {
            let compared = TextLines.compared(left, right)
            let lines = SideBySide.rows(compared.left, compared.right).map { row -> HTML in
                """
                <tr>\(cell(row.left, isOther: row.isDifferent, "del"))\
                \(cell(row.right, isOther: row.isDifferent, "ins"))</tr>
                """
            }
            rows = HTML(lines)
        }
        return """
            <div class="sides" tabindex="0" role="region" aria-label="Both versions of \(theirs.name)">\
            <table><caption class="hidden">Both versions</caption><thead><tr>\(heads)</tr></thead>\
            <tbody>\(rows)</tbody></table></div>
            """
    }

    private func about(_ version: ConflictReport.Version) -> String {
        let author = version.author.map { ", \($0)" } ?? ""
        return "\(StatusText.moment(version.modified)), \(size(version.size))\(author)"
    }

    private func cell(_ line: String?, isOther: Bool, _ element: HTML) -> HTML {
        guard let line else { return "<td class=\"none\"></td>" }
        let text = HTML.lines(line)
        return isOther
            ? "<td class=\"\(element)\"><\(element)>\(text)</\(element)></td>" : "<td>\(text)</td>"
    }

    /// A small text; nil for what is large, no text, or cannot be read now.
    private func text(
        _ version: ConflictReport.Version,
        _ path: SitePath,
        _ files: MountFiles
    ) async -> String? {
        guard version.size <= Self.largestText,
            let text = try? await BlockingWork.run({ () throws(Failure) in
                try files.text(path)?.text
            }),
            TextLines.count(text) <= Self.mostLines
        else { return nil }
        return text
    }
}

/// Two texts, line by line.
enum SideBySide {
    /// A line of either text; nil where the other one has one more.
    struct Row: Hashable {
        var left: String?
        var right: String?
        /// Whether the two are not the same.
        var isDifferent: Bool { left != right }
    }

    /// All lines of both: those that are in both beside each other, and of what differs as many as can be.
    static func rows(_ left: [String], _ right: [String]) -> [Row] {
        var removed: Set<Int> = []
        var inserted: Set<Int> = []
        for change in right.difference(from: left) {
            switch change {
            case .remove(let offset, _, _): removed.insert(offset)
            case .insert(let offset, _, _): inserted.insert(offset)
            }
        }
        var rows: [Row] = []
        var (one, other) = (0, 0)
        while one < left.count || other < right.count {
            let isRemoved = removed.contains(one)
            let isInserted = inserted.contains(other)
            switch (isRemoved, isInserted) {
            case (true, true):
                rows.append(Row(left: left[one], right: right[other]))
                (one, other) = (one + 1, other + 1)
            case (true, false):
                rows.append(Row(left: left[one], right: nil))
                one += 1
            case (false, true):
                rows.append(Row(left: nil, right: right[other]))
                other += 1
            case (false, false):
                guard one < left.count, other < right.count else { return rows }
                rows.append(Row(left: left[one], right: right[other]))
                (one, other) = (one + 1, other + 1)
            }
        }
        return rows
    }
}
