import Foundation
import OortCatalog
import Synchronization

/// Finding files.
extension Site {
    /// The most results that a page shows.
    private static var mostResults: Int { 200 }

    func search(_ visit: Visit) async throws(Failure) -> HTML {
        let text = visit.request.query["words"] ?? ""
        let words = text.split(whereSeparator: \.isWhitespace).map(String.init)
        let looksInside = visit.request.query["content"] == "1"
        let kind = visit.request.query["kind"].flatMap { SearchKind(rawValue: $0) }
        let kinds = SearchKind.allCases.map { each -> HTML in
            let mark: HTML = each == kind ? " selected" : ""
            return "<option value=\"\(each.rawValue)\"\(mark)>\(each.rawValue)</option>"
        }
        let check: HTML = looksInside ? " checked" : ""
        let form: HTML = """
            <form class="acts" role="search" aria-label="Search with more choices" action="/search">\
            <label>Words <input type="search" name="words" value="\(text)"></label>\
            <label>Kind <select name="kind"><option value="">any</option>\(kinds)</select></label>\
            <label><input type="checkbox" name="content" value="1"\(check)> Ask the services to look inside \
            files, too</label><button>Search</button></form>
            """
        guard !words.isEmpty else { return page("Search", current: "", visit, form) }
        let found = try await results(words, kind, looksInside: looksInside)
        let top = try await mountPoint()
        let rows = found.results.map { row($0, top) }
        let table: HTML = """
            <table class="files"><caption class="hidden">What was found</caption><thead><tr>\
            <th scope="col">Name</th><th scope="col">Folder</th><th scope="col">Size</th>\
            <th scope="col">Modified</th></tr></thead><tbody>\(rows)</tbody></table>
            """
        let notes = found.notes.map { "<p>\($0)</p>" as HTML }
        let more: HTML = "<p>There may be more: name another word.</p>"
        let count = found.results.count
        let sum = count == 1 ? "1 result" : "\(StatusText.number(count)) results"
        let body: HTML = """
            \(form)<p role="status">\(count == 0 ? "Nothing was found" : sum) for “\(text)”.</p>\(notes)
            \(rows.isEmpty ? nil : table)\(found.isCut ? more : nil)
            """
        return page("Search", current: "", visit, body)
    }

    private func row(_ result: SearchResult, _ top: String) -> HTML {
        guard let path = SitePath(result.path, below: top) else { return "" }
        let inside = result.found == .content ? " (inside)" : ""
        return """
            <tr><th scope="row"><a href="/files/\(path.encoded)">\(path.name)\
            \(result.isFolder ? "/" : "")</a>\(inside)</th>\
            <td><a href="/files/\(path.folder.encoded)">\(path.folder.shown)</a></td>\
            <td class="number">\(result.isFolder ? "" : size(result.size))</td>\
            <td class="time">\(StatusText.moment(result.modified))</td></tr>
            """
    }

    private func results(
        _ words: [String],
        _ kind: SearchKind?,
        looksInside: Bool
    ) async throws(Failure) -> SearchReport {
        let found = FoundSoFar()
        try await client.search(
            SearchRequest(
                words: words,
                kind: kind,
                content: looksInside,
                limit: Self.mostResults
            )
        ) { found.add($0) }
        return found.report
    }
}

/// The results of a search until now.
private final class FoundSoFar: Sendable {
    private let state = Mutex(SearchReport(results: [], notes: [], isCut: false))

    func add(_ line: SearchLine) {
        state.withLock { report in
            if let result = line.result { report.results.append(result) }
            if let note = line.note { report.notes.append(note) }
            if let end = line.end { report.isCut = end.isCut }
        }
    }

    var report: SearchReport { state.withLock { $0 } }
}
