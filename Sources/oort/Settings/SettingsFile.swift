import Foundation
import OortFileSystem
import OortModel
import OortWeather
import TOMLKit

/// Reads `config.toml`: every key is known and of its type, or the file is refused with the key's
/// name.
struct SettingsFile {
    /// The file's path, for messages.
    let path: String
    private let serviceNames: [String]

    init(path: String, serviceNames: [String]) {
        self.path = path
        self.serviceNames = serviceNames
    }

    /// The settings in the file; the defaults when there is no file.
    ///
    /// - Throws: `Failure` naming file and key.
    func read() throws(Failure) -> Settings {
        guard FileManager.default.fileExists(atPath: path) else { return Settings() }
        let text: String
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw Failure(
                "The settings \(path) cannot be read: \(error.reason)",
                advice: "Make the file readable, in UTF-8, or move it away to use the defaults."
            )
        }
        return try parse(text)
    }

    /// The settings in a text.
    ///
    /// - Throws: `Failure` naming file and key.
    func parse(_ text: String) throws(Failure) -> Settings {
        let table: TOMLTable
        do {
            table = try TOMLTable(string: text)
        } catch let error as TOMLParseError {
            throw Failure(
                "\(path), line \(error.source.begin.line): \(error.description)",
                advice: "The file must be TOML; docs/settings.md shows every key."
            )
        } catch {
            throw Failure("\(path): \(error.reason)")
        }
        var settings = Settings()
        let root = Section(path: path, name: "", table: table)
        try root.allow(
            [
                "mount_point", "cache_size", "poll_interval", "settle", "room_patience",
                "accounts", "ca_file", "desktop", "documents", "ignore", "links",
                "onlookers", "thumbnails",
            ] + serviceNames
        )
        settings.mountPoint = try root.path("mount_point")
        settings.caFile = try root.path("ca_file")
        if let size = try root.value(
            "cache_size",
            "a size of at least 1M such as \"20G\"",
            { ByteSize($0).flatMap { Settings.leastCache <= $0.bytes ? $0 : nil } }
        ) {
            settings.cacheSize = size
        }
        if let settle = try root.value("settle", "a time such as \"1s\"", { TimeSpan($0) }) {
            settings.settle = settle
        }
        if let patience = try root.value(
            "room_patience",
            "a time such as \"60s\"",
            { TimeSpan($0) }
        ) {
            settings.roomPatience = patience
        }
        settings.pollInterval = try root.value(
            "poll_interval",
            "a time above 0 such as \"60s\"",
            { TimeSpan($0).flatMap { $0.duration > .zero ? $0 : nil } }
        )
        let policies = LinkPolicy.allCases.map(\.rawValue).joined(separator: ", ")
        if let links = try root.value("links", "one of \(policies)", { LinkPolicy(rawValue: $0) }) {
            settings.links = links
        }
        if let documents = try root.section("documents") {
            try documents.allow(["text", "spreadsheet", "presentation", "drawing"])
            settings.documentFormats = try Self.documentFormats(documents)
        }
        if let desktop = try root.section("desktop") {
            try desktop.allow(["notices", "delays_sleep", "tray"])
            settings.showsNotices = try desktop.flag("notices") ?? true
            settings.delaysSleep = try desktop.flag("delays_sleep") ?? true
            settings.showsTray = try desktop.flag("tray") ?? true
        }
        settings.ignored = try root.patterns("ignore") ?? []
        if let onlookers = try root.section("onlookers") {
            try onlookers.allow(["programs", "largest_download"])
            if let programs = try onlookers.texts("programs") {
                settings.onlookers.programs = Set(programs.map(Onlookers.name))
            }
            if let size = try onlookers.value(
                "largest_download",
                "a size such as \"64K\"",
                { ByteSize($0) }
            ) {
                settings.onlookers.largestDownload = size.bytes
            }
        }
        if let thumbnails = try root.section("thumbnails") {
            try thumbnails.allow(["programs"])
            if let programs = try thumbnails.texts("programs") {
                settings.pictureViewers.programs = Set(programs.map(Onlookers.name))
            }
        }
        if let accounts = try root.section("accounts") {
            for name in accounts.keys {
                guard let account = try accounts.section(name) else { continue }
                try account.allow(["ignore", "leave_out", "read_only", "trash"])
                settings.leftOut[name] = try account.folders("leave_out")
                settings.ignoredInAccounts[name] = try account.patterns("ignore")
                if try account.flag("read_only") == true { settings.readOnlyAccounts.insert(name) }
                if try account.flag("trash") == false { settings.accountsWithoutTrash.insert(name) }
            }
        }
        for name in serviceNames {
            guard let section = try root.section(name) else { continue }
            let isWeather = name == "weather"
            settings.services[name] = try Self.service(
                section,
                beside: isWeather ? ["temperature", "wind", "rain"] : []
            )
            if isWeather { settings.weather = try Self.units(section) }
        }
        return settings
    }

    private static func documentFormats(
        _ section: Section
    ) throws(Failure) -> DocumentFormats {
        var formats = DocumentFormats()
        let fields: [(String, WritableKeyPath<DocumentFormats, String>, [String])] = [
            ("text", \.text, ["docx", "odt", "rtf", "pdf", "txt", "html", "epub", "md"]),
            ("spreadsheet", \.spreadsheet, ["xlsx", "ods", "pdf", "csv", "tsv"]),
            ("presentation", \.presentation, ["pptx", "odp", "pdf", "txt"]),
            ("drawing", \.drawing, ["svg", "png", "pdf", "jpg"]),
        ]
        for (key, field, allowed) in fields {
            let wish = try section.value(key, "one of \(allowed.joined(separator: ", "))") {
                allowed.contains($0) ? $0 : nil
            }
            if let wish { formats[keyPath: field] = wish }
        }
        return formats
    }

    private static func units(_ section: Section) throws(Failure) -> WeatherUnits {
        func one<Unit: CaseIterable & RawRepresentable<String>>(
            _ key: String,
            _ usual: Unit
        ) throws(Failure) -> Unit {
            let words = Unit.allCases.map(\.rawValue).joined(separator: ", ")
            return try section.value(key, "one of \(words)") { Unit(rawValue: $0) } ?? usual
        }
        var units = WeatherUnits()
        units.temperature = try one("temperature", units.temperature)
        units.wind = try one("wind", units.wind)
        units.rain = try one("rain", units.rain)
        return units
    }

    private static func service(
        _ section: Section,
        beside others: [String]
    ) throws(Failure) -> Settings.Service {
        try section.allow(["client_id", "client_secret_file", "endpoints"] + others)
        var service = Settings.Service()
        service.clientID = try section.value(
            "client_id",
            "a text that is not empty",
            takesNumbers: false
        ) {
            $0.isEmpty ? nil : $0
        }
        service.clientSecretFile = try section.path("client_secret_file")
        if let endpoints = try section.section("endpoints") {
            for key in endpoints.keys {
                service.endpoints[key] = try endpoints.value(key, "an http or https address") {
                    $0.hasPrefix("http://") || $0.hasPrefix("https://") ? $0 : nil
                }
            }
        }
        return service
    }
}

/// One table of the file, asked key by key.
private struct Section {
    let path: String
    let name: String
    let table: TOMLTable

    var keys: [String] { table.keys.sorted() }

    private func full(_ key: String) -> String { name.isEmpty ? key : "\(name).\(key)" }

    /// Refuses unknown keys: a misspelt one must not be ignored in silence.
    func allow(_ known: [String]) throws(Failure) {
        for key in keys where !known.contains(key) {
            throw Failure(
                "\(path): the key \"\(full(key))\" is not known.",
                advice: "Known here: \(known.sorted().joined(separator: ", "))."
            )
        }
    }

    func value<Value>(
        _ key: String,
        _ expected: String,
        takesNumbers: Bool = true,
        _ read: (String) -> Value?
    ) throws(Failure) -> Value? {
        guard let entry = table[key] else { return nil }
        let text = entry.string ?? (takesNumbers ? entry.int.map(String.init) : nil)
        guard let text, let value = read(text) else {
            throw Failure(
                "\(path): \"\(full(key))\" is \(Self.shown(entry)), but must be \(expected).",
                advice: "Correct the line, or take it out to use the default."
            )
        }
        return value
    }

    /// A list of texts.
    func texts(_ key: String) throws(Failure) -> [String]? {
        guard let entry = table[key] else { return nil }
        let texts = entry.array.map { $0.map(\.string) }
        guard let texts, texts.allSatisfy({ $0?.isEmpty == false }) else {
            throw Failure(
                "\(path): \"\(full(key))\" is \(Self.shown(entry)), but must be a list of texts.",
                advice: "Write it as [\"one\", \"two\"]; [] is none."
            )
        }
        return texts.compactMap(\.self)
    }

    /// A yes or no, as TOML has it.
    func flag(_ key: String) throws(Failure) -> Bool? {
        guard let entry = table[key] else { return nil }
        guard let value = entry.bool else {
            throw Failure(
                "\(path): \"\(full(key))\" is \(Self.shown(entry)), but must be true or false.",
                advice: "Correct the line, or take it out to use the default."
            )
        }
        return value
    }

    /// A list of lines as `.gitignore` has them.
    func patterns(_ key: String) throws(Failure) -> [String]? {
        guard let entry = table[key] else { return nil }
        let lines = entry.array?.map { $0.string } ?? [nil]
        let texts = lines.compactMap(\.self)
        let areLines = texts.allSatisfy { line in
            !line.unicodeScalars.contains { $0 == "\n" || $0 == "\r" || $0 == "\0" }
        }
        guard texts.count == lines.count, areLines else {
            throw Failure(
                "\(path): \"\(full(key))\" is \(Self.shown(entry)), but must be a list of texts of one "
                    + "line each, such as [\"node_modules/\", \"*.tmp\"].",
                advice: "Correct the line, or take it out to use the default."
            )
        }
        return texts
    }

    /// A list of paths in an account, each as its names from the top down.
    func folders(_ key: String) throws(Failure) -> [[String]]? {
        guard let texts = try texts(key) else { return nil }
        return try texts.map { text throws(Failure) in
            let names = text.parts(between: "/").filter { !$0.isEmpty }.map(String.init)
            let isPath =
                !names.isEmpty && !text.unicodeScalars.contains("\0")
                && !names.contains { $0 == "." || $0 == ".." }
            guard isPath else {
                throw Failure(
                    "\(path): \"\(full(key))\" has \"\(TerminalText.line(text))\", which is not the path "
                        + "of a folder from the account's top folder down.",
                    advice: "Write it as [\"/Archive\", \"/Photos/Raw\"]; [] is none."
                )
            }
            return names
        }
    }

    /// A path; `~/` is the home folder.
    func path(_ key: String) throws(Failure) -> String? {
        try value(key, "an absolute path, or one that begins with ~/") { text in
            let path = (text as NSString).expandingTildeInPath
            return path.hasPrefix("/") ? path : nil
        }
    }

    func section(_ key: String) throws(Failure) -> Section? {
        guard let entry = table[key] else { return nil }
        guard let table = entry.table else {
            throw Failure(
                "\(path): \"\(full(key))\" is \(Self.shown(entry)), but must be a table.",
                advice: "Write [\(full(key))] on a line of its own and its keys below."
            )
        }
        return Section(path: path, name: full(key), table: table)
    }

    private static func shown(_ entry: any TOMLValueConvertible) -> String {
        if let text = entry.string { return "\"\(text)\"" }
        if let number = entry.int { return "\(number)" }
        return "a value of type \(entry.type.description)"
    }
}
