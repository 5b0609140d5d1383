import ArgumentParser
import OortWeather

/// `oort login weather`.
struct LoginWeatherCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "weather",
        abstract: "The weather of the places that you choose.",
        discussion: """
            No account is needed. Add a place with mkdir, as in mkdir ~/clouds/weather/Valencia, or \
            "Valencia, Venezuela"; rmdir takes it away. In it lie now.txt, hourly.csv, daily.csv, \
            forecast.json, sun-and-moon.txt and chart.svg.

            Open-Meteo is free for private use. MET Norway's forecasts come from the Norwegian \
            weather service, for the whole world; places are looked up at Open-Meteo all the same. \
            A second sign-in with another source keeps the places. There is no --root: the account has \
            no folders but the places.
            """
    )

    @Option(help: "The source of the weather.")
    var source = WeatherSourceArgument(.openMeteo)

    @Option(
        help: ArgumentHelp(
            "An e-mail or web address of yours that goes with the requests; MET Norway wishes for one.",
            valueName: "address"
        )
    )
    var contact: String?

    @Option(help: "Your name for the account, which is its folder (default: weather).")
    var name: String?

    func run() async throws {
        let login = WeatherLogin(source: source.name, contact: contact, name: name)
        try await SignInContext.run(named: name, for: TerminalPerson()) { try await login.run($0) }
    }
}

/// The source of the weather, as an argument.
struct WeatherSourceArgument: ExpressibleByArgument, Sendable {
    let name: WeatherSourceName

    init(_ name: WeatherSourceName) { self.name = name }

    init?(argument: String) {
        guard let name = WeatherSourceName(rawValue: argument) else { return nil }
        self.name = name
    }

    var defaultValueDescription: String { name.rawValue }

    static var allValueStrings: [String] { WeatherSourceName.allCases.map(\.rawValue) }
}
