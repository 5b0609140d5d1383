import Foundation
import OortFileSystem
import OortModel
import OortWeather

/// The settings and the log.
extension Site {
    func settings(_ visit: Visit) async throws(Failure) -> HTML {
        let settings = try Surroundings(folders: folders).settings
        let formats = settings.documentFormats
        let withoutTrash = settings.accountsWithoutTrash.sorted().joined(separator: ", ")
        let readOnly = settings.readOnlyAccounts.sorted().joined(separator: ", ")
        var rows: [(String, String, String)] = [
            ("mount_point", settings.mountPoint ?? folders.defaultMountPoint, "where to mount"),
            (
                "cache_size", "\(settings.cacheSize)",
                "the most room for contents that can be fetched again"
            ),
            (
                "poll_interval", settings.pollInterval.map(words) ?? "as each service wants it",
                "how often to ask for news"
            ),
            ("settle", words(settings.settle), "how long a file rests before it goes out"),
            (
                "room_patience", words(settings.roomPatience),
                "how long a write to a full disk waits for uploads"
            ),
            ("ca_file", settings.caFile ?? "the system's", "certificates that are trusted"),
            ("links", settings.links.rawValue, "which link files show as links"),
            ("ignore", ignored(settings), "what stays on this machine"),
            ("accounts, leave_out", leftOut(settings), "folders that are not shown here"),
            ("accounts, read_only", readOnly.isEmpty ? "none" : readOnly, "not changed here"),
            (
                "accounts, trash = false", withoutTrash.isEmpty ? "none" : withoutTrash,
                "where SFTP keeps nothing that is deleted"
            ),
            (
                "onlookers.programs", listed(settings.onlookers.programs.sorted()),
                "programs that large files are not downloaded for"
            ),
            (
                "onlookers.largest_download",
                "\(ByteSize(bytes: settings.onlookers.largestDownload))",
                "the largest file that is downloaded for them"
            ),
            (
                "thumbnails.programs", listed(settings.pictureViewers.programs.sorted()),
                "programs for which the services' thumbnails are brought"
            ),
            ("documents.text", formats.text, "the form of text documents"),
            ("documents.spreadsheet", formats.spreadsheet, "the form of tables"),
            ("documents.presentation", formats.presentation, "the form of slides"),
            ("documents.drawing", formats.drawing, "the form of drawings"),
            (
                "desktop.notices", settings.showsNotices ? "yes" : "no",
                "whether the desktop shows what needs a person"
            ),
            (
                "desktop.delays_sleep", settings.delaysSleep ? "yes" : "no",
                "whether sleep waits for what is on its way"
            ),
            (
                "desktop.tray", settings.showsTray ? "yes" : "no",
                "whether the panel shows an icon"
            ),
        ]
        rows += [
            (
                "weather.temperature", settings.weather.temperature.rawValue,
                "in the weather's files"
            ),
            ("weather.wind", settings.weather.wind.rawValue, "in the weather's files"),
            ("weather.rain", settings.weather.rain.rawValue, "in the weather's files"),
        ]
        for (name, service) in settings.services.sorted(by: { $0.key < $1.key }) {
            let isRegistered = service.clientID != nil
            rows.append(
                (
                    "\(name).client_id", isRegistered ? "set" : "not set",
                    "the registration of this program at the service"
                )
            )
        }
        let lines = rows.map { key, value, meaning -> HTML in
            """
            <tr><th scope="row"><code>\(key)</code></th><td>\(value)</td><td>\(meaning)</td></tr>
            """
        }
        let body: HTML = """
            <p>The settings as <code>\(folders.settingsFile)</code> and the defaults have them now; a mount \
            takes them up when it begins. Its flags win.</p>
            <table class="files"><caption class="hidden">Settings</caption><thead><tr><th scope="col">Key\
            </th><th scope="col">Value</th><th scope="col">Meaning</th></tr></thead>\
            <tbody>\(lines)</tbody></table>
            """
        return page("Settings", current: "/settings", visit, body)
    }

    private func leftOut(_ settings: Settings) -> String {
        let folders = settings.leftOut.sorted { $0.key < $1.key }.flatMap { name, paths in
            paths.map { "\(name): /\($0.joined(separator: "/"))" }
        }
        return listed(folders)
    }

    private func listed(_ names: [String]) -> String {
        let text = names.joined(separator: ", ")
        return text.isEmpty ? "none" : text
    }

    private func ignored(_ settings: Settings) -> String {
        let own = settings.ignoredInAccounts.sorted { $0.key < $1.key }.map { name, rules in
            "\(name): \(rules.joined(separator: ", "))"
        }
        let all = settings.ignored + own
        return all.isEmpty ? "nothing" : all.joined(separator: "; ")
    }

    private func words(_ span: TimeSpan) -> String {
        let seconds = span.seconds
        return seconds == seconds.rounded() ? "\(Int64(seconds)) s" : "\(seconds) s"
    }

    /// The most lines of the log that a page shows.
    private static var mostLines: Int { 2000 }

    func log(_ visit: Visit) async throws(Failure) -> HTML {
        let wished = visit.request.query["lines"].flatMap { Int($0) } ?? 200
        let count = min(max(wished, 1), Self.mostLines)
        let path = folders.logFile
        let last = try await BlockingWork.run { () throws(Failure) in
            var tail = LogTail(path: path)
            return tail.last(count)
        }
        guard let last else {
            return page("Log", current: "/log", visit, "<p>There is no log yet.</p>")
        }
        let lines = await LogNames(folders: folders).named(last)
        let more: HTML = "<p><a href=\"/log?lines=\(Self.mostLines)\">More lines</a></p>"
        let body: HTML = """
            <p>The last \(lines.count) lines of <code>\(path)</code>.</p>
            \(count < Self.mostLines ? more : nil)
            <pre tabindex="0" role="region" aria-label="Log">\(HTML.lines(lines.joined(separator: "\n")))</pre>
            """
        return page("Log", current: "/log", visit, body)
    }
}
