import Foundation
public import OortModel
import Synchronization

/// Open-Meteo's forecasts and search for places, and MET Norway's forecasts, in their own forms; the
/// weather itself follows from the hour and the place.
public final class WeatherSimulator: SimulatedService {
    public let name = "weather"
    public let hosts = [openMeteo, geocoding, metNorway]
    public let account: SimulatedAccount

    static let openMeteo = "api.open-meteo.com"
    static let geocoding = "geocoding-api.open-meteo.com"
    static let metNorway = "api.met.no"

    private let now: @Sendable () -> Int64

    /// The services at a time, in seconds since 1970.
    public init(
        now: @escaping @Sendable () -> Int64 = { Timestamp.now.seconds }
    ) {
        self.now = now
        let rules = SimulatedTreeRules(
            comparison: .exact,
            keepsPathLog: false,
            makeID: { _, random in random.hex(16) },
            makeRevisionID: { $0.hex(16) }
        )
        // No files are stored there.
        account = SimulatedAccount(
            tree: SimulatedTree(rules: rules, rootID: "root", rootName: "", seed: 1)
        )
    }

    public func route(of request: SimulatorRequest) -> String {
        switch request.host {
        case Self.openMeteo: "open-meteo"
        case Self.geocoding: "geocoding"
        default: "met-norway"
        }
    }

    public func loseUploadSessions() {}

    public func answer(
        to request: SimulatorRequest,
        for trouble: SimulatedTrouble
    ) -> SimulatorAnswer {
        switch trouble {
        case .rateLimited(let status, let after):
            let headers = after.map { [("Retry-After", "\($0)")] } ?? []
            return .text("Too Many Requests", status: status, headers: headers)
        case .serverError(let status, _): return .text("Bad Gateway", status: status)
        case .expiredToken: return .text("Unauthorized", status: 401)
        }
    }

    public func answer(_ request: SimulatorRequest) async -> SimulatorAnswer {
        guard request.method == "GET" else { return .text("Method Not Allowed", status: 405) }
        switch (request.host, request.path) {
        case (Self.geocoding, "/v1/search"): return search(request)
        case (Self.openMeteo, "/v1/forecast"): return openMeteo(request)
        case (Self.metNorway, "/weatherapi/locationforecast/2.0/complete"):
            return metNorway(request)
        default: return .text("Not Found", status: 404)
        }
    }

    // MARK: Places

    private struct Place {
        let name: String
        let region: String
        let country: String
        let code: String
        let latitude: Double
        let longitude: Double
        let zone: String

        init(
            _ name: String,
            _ region: String,
            _ country: String,
            _ code: String,
            _ latitude: Double,
            _ longitude: Double,
            _ zone: String
        ) {
            self.name = name
            self.region = region
            self.country = country
            self.code = code
            self.latitude = latitude
            self.longitude = longitude
            self.zone = zone
        }
    }

    private static let places = [
        Place("Valencia", "Valencia", "Spain", "ES", 39.47391, -0.37966, "Europe/Madrid"),
        Place("Valencia", "Carabobo", "Venezuela", "VE", 10.16202, -68.00765, "America/Caracas"),
        Place("Berlin", "State of Berlin", "Germany", "DE", 52.52437, 13.41053, "Europe/Berlin"),
        Place("Oslo", "Oslo", "Norway", "NO", 59.91273, 10.74609, "Europe/Oslo"),
        Place("Tromsø", "Troms", "Norway", "NO", 69.6489, 18.95508, "Europe/Oslo"),
        Place("Kathmandu", "Bagmati", "Nepal", "NP", 27.70169, 85.3206, "Asia/Kathmandu"),
    ]

    /// One character finds nothing, two what is called exactly so, more what begins so; without a result
    /// there is no list at all.
    private func search(_ request: SimulatorRequest) -> SimulatorAnswer {
        let name = (request.query("name") ?? "").lowercased()
        let found = Self.places.enumerated().filter { _, place in
            let own = place.name.lowercased()
            return name.count > 2 ? own.hasPrefix(name) : name.count == 2 && own == name
        }
        guard !found.isEmpty else { return .json(["generationtime_ms": .number(0.5)]) }
        let results = found.map { index, place -> JSON in
            [
                "id": .integer(Int64(2_500_000 + index)), "name": .string(place.name),
                "latitude": .number(place.latitude), "longitude": .number(place.longitude),
                "elevation": .number(16), "feature_code": "PPLA",
                "country_code": .string(place.code),
                "timezone": .string(place.zone), "population": 792_086,
                "country": .string(place.country), "admin1": .string(place.region),
            ]
        }
        return .json(["results": .array(results), "generationtime_ms": .number(0.5)])
    }

    // MARK: Forecasts

    /// The weather of an hour, in the units of the metric system, wind in metres a second.
    private func weather(_ hour: Int64) -> [String: Double] {
        let day = Double(hour % 24)
        let long = Double(hour % 120)
        let cloud = 50 + 45 * sin(long / 9)
        return [
            "temperature": 12 + 7 * sin((day - 9) / 24 * 2 * .pi) + long / 40,
            "humidity": 65 - 20 * sin((day - 9) / 24 * 2 * .pi),
            "cloud": cloud,
            "low": max(0, cloud - 30), "middle": cloud / 2, "high": min(100, cloud + 5),
            "rain": cloud > 85 ? (cloud - 85) / 5 : 0,
            "chance": max(0, cloud - 10),
            "wind": 3 + 2 * sin(long / 7), "direction": (long * 3).rounded(),
            "pressure": 1013 + 8 * sin(long / 30),
        ]
    }

    private static func rounded(_ value: Double?) -> JSON {
        .number(((value ?? 0) * 10).rounded() / 10)
    }

    private func openMeteo(_ request: SimulatorRequest) -> SimulatorAnswer {
        func refusal(_ reason: String) -> SimulatorAnswer {
            .json(["error": true, "reason": .string(reason)], status: 400)
        }
        guard let latitude = request.query("latitude").flatMap({ Double($0) }),
            let longitude = request.query("longitude").flatMap({ Double($0) })
        else { return refusal("Value of type 'Float' required for key 'latitude'.") }
        guard (-90...90).contains(latitude) else {
            return refusal("Latitude must be in range of -90 to 90°. Given: \(latitude).")
        }
        let past = request.query("past_days").flatMap { Int64($0) } ?? 0
        let days = request.query("forecast_days").flatMap { Int64($0) } ?? 7
        let first = (now() / 86_400 - past) * 24
        let hours = (first..<first + (past + days) * 24).map { $0 }
        var hourly: [String: JSON] = ["time": .array(hours.map { .integer($0 * 3600) })]
        var units: [String: JSON] = ["time": "unixtime"]
        let names = [
            "temperature_2m": "temperature", "apparent_temperature": "temperature",
            "dew_point_2m": "temperature", "relative_humidity_2m": "humidity",
            "precipitation_probability": "chance", "precipitation": "rain",
            "pressure_msl": "pressure", "cloud_cover": "cloud", "cloud_cover_low": "low",
            "cloud_cover_mid": "middle", "cloud_cover_high": "high", "wind_speed_10m": "wind",
            "wind_gusts_10m": "wind", "wind_direction_10m": "direction",
        ]
        for variable in (request.query("hourly") ?? "").split(separator: ",").map(String.init) {
            units[variable] = "?"
            if variable == "weather_code" {
                hourly[variable] = .array(
                    hours.map { hour in
                        let weather = weather(hour)
                        let isWet = (weather["rain"] ?? 0) > 0
                        return .integer(isWet ? 61 : (weather["cloud"] ?? 0) > 50 ? 3 : 1)
                    }
                )
            } else if let key = names[variable] {
                hourly[variable] = .array(hours.map { Self.rounded(weather($0)[key]) })
            } else {
                return refusal(
                    "Data corrupted at path ''. Cannot initialize \(variable) from invalid String "
                        + "value."
                )
            }
        }
        return .json([
            "latitude": .number(latitude), "longitude": .number(longitude),
            "generationtime_ms": .number(0.2), "utc_offset_seconds": 0, "timezone": "GMT",
            "timezone_abbreviation": "GMT", "elevation": .number(16),
            "hourly_units": .object(units),
            "hourly": .object(hourly),
        ])
    }

    private func metNorway(_ request: SimulatorRequest) -> SimulatorAnswer {
        let agent = (request.header("User-Agent") ?? "").lowercased()
        let isNamed = ["curl/", "python", "wget/", "java/", "okhttp"].allSatisfy {
            !agent.hasPrefix($0)
        }
        guard !agent.isEmpty, isNamed else { return .text("Forbidden", status: 403) }
        guard let latitude = request.query("lat"), let longitude = request.query("lon"),
            let north = Double(latitude), let east = Double(longitude)
        else { return .text("Missing parameter", status: 400) }
        for text in [latitude, longitude] {
            let digits = text.split(separator: ".").dropFirst().first?.count ?? 0
            guard digits <= 4 else { return .text("Forbidden", status: 403) }
        }
        let hour = now() / 3600
        // Made anew every six hours.
        let made = hour / 6 * 6 * 3600
        let headers = [
            ("Last-Modified", Self.date(made)), ("Expires", Self.date(now() + 1800)),
            ("Date", Self.date(now())),
        ]
        if request.header("If-Modified-Since") == Self.date(made) {
            return SimulatorAnswer(status: 304, headers: headers)
        }
        var entries: [JSON] = []
        for step in 0..<54 { entries.append(entry(hour + Int64(step), hours: 1)) }
        let later = (hour + 54) / 6 * 6 + 6
        for step in 0..<26 { entries.append(entry(later + Int64(step) * 6, hours: 6)) }
        entries.append(entry(later + 26 * 6, hours: 0))
        return .json(
            [
                "type": "Feature",
                "geometry": [
                    "type": "Point",
                    "coordinates": .array([.number(east), .number(north), .integer(16)]),
                ],
                "properties": [
                    "meta": [
                        "updated_at": .string(Self.instant(made)),
                        "units": ["air_temperature": "celsius", "wind_speed": "m/s"],
                    ],
                    "timeseries": .array(entries),
                ],
            ],
            headers: headers
        )
    }

    private func entry(_ hour: Int64, hours: Int) -> JSON {
        let weather = weather(hour)
        func value(_ key: String) -> JSON { Self.rounded(weather[key]) }
        var data: [String: JSON] = [
            "instant": [
                "details": [
                    "air_pressure_at_sea_level": value("pressure"),
                    "air_temperature": value("temperature"),
                    "cloud_area_fraction": value("cloud"),
                    "cloud_area_fraction_high": value("high"),
                    "cloud_area_fraction_low": value("low"),
                    "cloud_area_fraction_medium": value("middle"),
                    "dew_point_temperature": value("temperature"),
                    "relative_humidity": value("humidity"),
                    "wind_from_direction": value("direction"), "wind_speed": value("wind"),
                    "wind_speed_of_gust": value("wind"),
                ]
            ]
        ]
        let wet = (weather["rain"] ?? 0) > 0
        let period: JSON = [
            "summary": ["symbol_code": wet ? "lightrainshowers_day" : "partlycloudy_night"],
            "details": [
                "precipitation_amount": value("rain"),
                "probability_of_precipitation": value("chance"),
            ],
        ]
        if hours == 1 { data["next_1_hours"] = period }
        if hours > 0 { data["next_6_hours"] = period }
        return ["time": .string(Self.instant(hour * 3600)), "data": .object(data)]
    }

    private static func instant(_ time: Int64) -> String {
        Timestamp(seconds: time).rfc3339(.seconds)
    }

    private static func date(_ time: Int64) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSince1970: Double(time)))
    }
}
