import Foundation
import OortModel
import OortFileSystem
import OortWeather
import Testing

@testable import oort

@Suite("Settings")
struct SettingsTests {
    private func read(_ text: String) throws -> Settings {
        try SettingsFile(path: "/x/config.toml", serviceNames: ["dropbox", "drive", "weather"])
            .parse(text)
    }

    @Test("every key is read")
    func everyKey() throws {
        let settings = try read(
            """
            mount_point = "/mnt/clouds"
            cache_size = "2G"
            poll_interval = 90
            settle = "250ms"
            room_patience = "2s"
            ca_file = "/etc/ca.pem"
            [documents]
            text = "odt"
            [desktop]
            notices = false
            [onlookers]
            programs = ["gdk-pixbuf-thumbnailer", "clamscan"]
            largest_download = "1M"
            [weather]
            temperature = "fahrenheit"
            wind = "m/s"
            [accounts.work]
            read_only = true
            trash = true
            [accounts.home]
            read_only = false
            trash = false
            [dropbox]
            client_id = "abc"
            client_secret_file = "/etc/secret"
            [dropbox.endpoints]
            api = "http://127.0.0.1:1/"
            """
        )
        #expect(settings.mountPoint == "/mnt/clouds")
        #expect(settings.cacheSize.bytes == 2 << 30)
        #expect(settings.pollInterval?.duration == .seconds(90))
        #expect(settings.settle.duration == .milliseconds(250))
        #expect(settings.roomPatience.duration == .seconds(2))
        #expect(settings.caFile == "/etc/ca.pem")
        #expect(!settings.showsNotices && settings.delaysSleep)
        #expect(settings.readOnlyAccounts == ["work"])
        #expect(settings.accountsWithoutTrash == ["home"])
        #expect(settings.onlookers.programs == ["gdk-pixbuf-thum", "clamscan"])
        #expect(settings.onlookers.largestDownload == 1 << 20)
        #expect(settings.weather.temperature == .fahrenheit)
        #expect(settings.weather.wind == .metresPerSecond && settings.weather.rain == .millimetres)
        #expect(settings.documentFormats.text == "odt")
        #expect(settings.documentFormats.spreadsheet == "xlsx")
        #expect(settings.service("dropbox").clientID == "abc")
        #expect(settings.service("dropbox").clientSecretFile == "/etc/secret")
        #expect(settings.service("dropbox").endpoints == ["api": "http://127.0.0.1:1/"])
        #expect(settings.service("drive") == Settings.Service())
    }

    @Test("what stays here is told for all accounts, and after that for one")
    func ignored() throws {
        let settings = try read(
            """
            ignore = ["node_modules/", "*.tmp"]
            [accounts.work]
            ignore = ["!keep.tmp", "/build"]
            """
        )
        let none = NameRules(comparison: .exact, allowsDuplicates: false) { _, _, _ in nil }
        var some = none
        some.stayHere = ["*.part"]
        let rules = settings.ignoreRules(of: "work", after: some)
        #expect(rules.lines == ["*.part", "node_modules/", "*.tmp", "!keep.tmp", "/build"])
        #expect(rules.ignore(["a", "x.tmp"], isFolder: false))
        #expect(!rules.ignore(["a", "keep.tmp"], isFolder: false))
        #expect(
            settings.ignoreRules(of: "other", after: none).lines == ["node_modules/", "*.tmp"]
        )
    }

    @Test("folders are left out by their paths from the account's top down")
    func leftOut() throws {
        let settings = try read("[accounts.work]\nleave_out = [\"/a/b c\", \"d\"]")
        #expect(settings.leftOut == ["work": [["a", "b c"], ["d"]]])
    }

    @Test(
        "a mistake is told with file and key",
        arguments: [
            ("cache_sice = \"2G\"", "cache_sice"), ("ignore = \"*.tmp\"", "ignore"),
            ("ignore = [1]", "ignore"), ("ignore = [\"a\\nb\"]", "ignore"),
            ("[accounts.work]\nignore = true", "accounts.work.ignore"),
            ("cache_size = \"much\"", "cache_size"),
            ("cache_size = true", "cache_size"), ("cache_size = 5", "cache_size"),
            ("poll_interval = \"soon\"", "poll_interval"),
            ("mount_point = \"clouds\"", "mount_point"),
            ("dropbox = 3", "dropbox"),
            ("[dropbox]\nclient = \"x\"", "dropbox.client"),
            ("[dropbox.endpoints]\napi = \"ftp://x\"", "dropbox.endpoints.api"),
            ("[documents]\ntext = \"doc\"", "documents.text"),
            ("[desktop]\nnotices = \"no\"", "desktop.notices"),
            ("[onlookers]\nprograms = \"clamscan\"", "onlookers.programs"),
            ("[onlookers]\nprograms = [1]", "onlookers.programs"),
            ("[onlookers]\nlargest_download = \"much\"", "onlookers.largest_download"),
            ("[weather]\nwind = \"beaufort\"", "weather.wind"),
            ("[dropbox]\nwind = \"m/s\"", "dropbox.wind"),
            ("[accounts.work]\nread_only = 1", "accounts.work.read_only"),
            ("[accounts.work]\ntrash = \"off\"", "accounts.work.trash"),
            ("[accounts.work]\nleave_out = [\"/\"]", "accounts.work.leave_out"),
            ("[accounts.work]\nleave_out = [\"/a/../b\"]", "accounts.work.leave_out"),
            ("[thumbnails]\nprograms = \"thunar\"", "thumbnails.programs"),
            ("[accounts.work]\nreadonly = true", "accounts.work.readonly"),
            ("[webdav]\nclient_id = \"x\"", "webdav"),
            ("= 3", "line 1"),
        ]
    )
    func mistakes(text: String, key: String) throws {
        let failure = try #require(throws: Failure.self) { try read(text) }
        #expect(failure.message.contains("/x/config.toml"))
        #expect(failure.message.contains(key))
    }

    @Test(
        "sizes are read as people write them",
        arguments: [
            ("0", 0), ("4096", 4096), ("1k", 1024), ("20G", 20 << 30), ("1.5 GiB", 3 << 29),
            ("3MB", 3 << 20), ("2t", 2 << 40),
        ] as [(String, Int64)]
    )
    func sizes(text: String, bytes: Int64) {
        #expect(ByteSize(text)?.bytes == bytes)
    }

    @Test(
        "what is no size is refused",
        arguments: ["", "G", "-1", "1x", "1.2.3G", "1e3", "ib", "9e99T"]
    )
    func noSizes(text: String) {
        #expect(ByteSize(text) == nil)
    }

    @Test(
        "times are read as people write them",
        arguments: [
            ("60s", 60), ("5m", 300), ("1h", 3600), ("30", 30), ("1.5s", 1.5), ("500ms", 0.5),
        ]
    )
    func times(text: String, seconds: Double) {
        #expect(TimeSpan(text)?.seconds == seconds)
    }

    @Test("what is no time is refused", arguments: ["", "s", "-1s", "1 week", "1e99", "nan"])
    func noTimes(text: String) {
        #expect(TimeSpan(text) == nil)
    }

    @Test("a size is shown in the largest unit that fits")
    func shownSizes() {
        #expect(ByteSize(bytes: 1023).description == "1023 B")
        #expect(ByteSize(bytes: 1536).description == "1.5 KiB")
        #expect(ByteSize(bytes: 20 << 30).description == "20 GiB")
    }

    @Test("the folders follow the environment, relative values aside")
    func folders() throws {
        let folders = try Folders(environment: [
            "HOME": "/home/u", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "relative",
            "XDG_RUNTIME_DIR": "/r",
        ])
        #expect(folders.settingsFile == "/c/oort/config.toml")
        #expect(folders.state == "/home/u/.local/state/oort")
        #expect(folders.cache == "/home/u/.cache/oort")
        #expect(folders.socket == "/r/oort/control.sock")
        #expect(folders.defaultMountPoint == "/home/u/clouds")
    }

    @Test("one variable has everything in a folder of its own")
    func ownFolder() throws {
        let folders = try Folders(environment: [
            "HOME": "/home/u", "XDG_STATE_HOME": "/s", "OORT_FOLDER": "/own",
        ])
        #expect(folders.settingsFile == "/own/config/config.toml")
        #expect(folders.state == "/own/state" && folders.cache == "/own/cache")
        #expect(folders.socket == "/own/run/control.sock")
        #expect(!folders.isUsualState)
        let relative = try Folders(environment: ["HOME": "/home/u", "OORT_FOLDER": "own"])
        #expect(relative.state == "/home/u/.local/state/oort")
    }

    @Test("without a session the socket lies in the state folder, where nobody else can be first")
    func runtimeFolder() throws {
        func runtime(_ home: String) throws -> String {
            try Folders(environment: ["HOME": home], session: "/nonexistent").runtime
        }
        #expect(try runtime("/home/u") == "/home/u/.local/state/oort/run")
        let long = "/home/" + String(repeating: "u", count: 80)
        #expect(try runtime(long) == "/tmp/oort-\(getuid())")
        let here = try Folders(environment: ["HOME": "/home/u"], session: NSHomeDirectory())
        #expect(here.runtime == NSHomeDirectory() + "/oort")
        #expect(here.isUsualState)
    }
}
