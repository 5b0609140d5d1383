import OortFileSystem
import OortModel
import OortWeather

/// What the user can set, with the defaults that hold where nothing is set.
struct Settings: Hashable, Sendable {
    /// What belongs to one service.
    struct Service: Hashable, Sendable {
        /// The OAuth client id that the user registered at the service.
        var clientID: String?
        /// A file with the client's secret, for services that give desktop programs one.
        var clientSecretFile: String?
        /// Base addresses by name, in place of the real hosts: for tests.
        var endpoints: [String: String] = [:]
    }

    /// The least room for contents, bytes: a smaller number lacks its unit.
    static let leastCache: Int64 = 1 << 20

    /// Where to mount; nil is `~/clouds`.
    var mountPoint: String?
    /// The most bytes of contents that can be fetched again.
    var cacheSize = ByteSize(bytes: 20 << 30)
    /// How often to ask for news; nil leaves it to each service.
    var pollInterval: TimeSpan?
    /// How long an item must be unchanged before it is sent.
    var settle = TimeSpan(.seconds(1))
    /// How long a write to a full disk waits for an upload to make room.
    var roomPatience = TimeSpan(.seconds(60))
    /// A file of certificates (PEM) to trust in place of the system's.
    var caFile: String?
    /// Which link files of the services show as links.
    var links = LinkPolicy.own
    /// The extensions in which native documents are shown, the wish for each kind.
    var documentFormats = DocumentFormats()
    /// The accounts in which nothing may be changed, by name.
    var readOnlyAccounts: Set<String> = []
    /// The accounts of which Oort's own trash keeps nothing, by name.
    var accountsWithoutTrash: Set<String> = []
    /// What stays on this machine, in all accounts.
    var ignored: [String] = []
    /// The same of one account, by its name.
    var ignoredInAccounts: [String: [String]] = [:]
    /// The folders that are not shown, by account: of each the names from the account's top down.
    var leftOut: [String: [[String]]] = [:]
    /// The programs that look at files which no person asked them to open.
    var onlookers = Onlookers()
    /// The programs for which the services' thumbnails are brought.
    var pictureViewers = PictureViewers()
    /// Whether the desktop shows what needs a person.
    var showsNotices = true
    /// Whether sleep and shutdown wait while something is on its way to a cloud.
    var delaysSleep = true
    /// Whether the panel shows an icon.
    var showsTray = true
    /// The units in which the weather is shown.
    var weather = WeatherUnits()
    /// What belongs to each service, by the service's name.
    var services: [String: Service] = [:]

    /// By which rules things of an account stay here: first the service's own, then those of all accounts,
    /// then the account's.
    func ignoreRules(of account: String, after names: NameRules) -> IgnoreRules {
        IgnoreRules(names.stayHere + ignored + (ignoredInAccounts[account] ?? []))
    }

    /// What belongs to one service; the defaults when nothing is set.
    func service(_ name: String) -> Service { services[name] ?? Service() }
}

/// In which form native documents are read.
struct DocumentFormats: Hashable, Sendable {
    /// For text documents: docx, odt, pdf, txt, html, md.
    var text = "docx"
    /// For tables: xlsx, ods, pdf, csv.
    var spreadsheet = "xlsx"
    /// For slides: pptx, odp, pdf.
    var presentation = "pptx"
    /// For drawings: svg, png, pdf, jpg.
    var drawing = "svg"

    /// The same by the services' own first choices.
    var preference: ExportPreference {
        ExportPreference([
            "docx": text, "xlsx": spreadsheet, "pptx": presentation, "svg": drawing,
        ])
    }
}
