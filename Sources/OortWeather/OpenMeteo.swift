import Foundation
import OortModel

/// Open-Meteo's protocol: <https://open-meteo.com/en/docs> and
/// <https://open-meteo.com/en/docs/geocoding-api>.
enum OpenMeteo {
    private static let variables = [
        "temperature_2m", "apparent_temperature", "relative_humidity_2m", "dew_point_2m",
        "precipitation_probability", "precipitation", "weather_code", "pressure_msl", "cloud_cover",
        "cloud_cover_low", "cloud_cover_mid", "cloud_cover_high", "wind_speed_10m",
        "wind_gusts_10m", "wind_direction_10m",
    ]

    /// The path of a place's forecast: times as numbers in UTC, units of the metric system.
    static func path(of place: WeatherPlace) -> String {
        "/v1/forecast?latitude=\(Decimal.text(place.latitude, 4))"
            + "&longitude=\(Decimal.text(place.longitude, 4))"
            + "&hourly=\(variables.joined(separator: ","))"
            + "&wind_speed_unit=ms&timeformat=unixtime&timezone=GMT&past_days=1&forecast_days=8"
    }

    private struct Answer: Decodable {
        struct Hourly: Decodable {
            var time: [Int64]
            var temperature_2m: [Double?]?
            var apparent_temperature: [Double?]?
            var relative_humidity_2m: [Double?]?
            var dew_point_2m: [Double?]?
            var precipitation_probability: [Double?]?
            var precipitation: [Double?]?
            var weather_code: [Double?]?
            var pressure_msl: [Double?]?
            var cloud_cover: [Double?]?
            var cloud_cover_low: [Double?]?
            var cloud_cover_mid: [Double?]?
            var cloud_cover_high: [Double?]?
            var wind_speed_10m: [Double?]?
            var wind_gusts_10m: [Double?]?
            var wind_direction_10m: [Double?]?
        }

        var hourly: Hourly
    }

    /// An answer as a forecast.
    ///
    /// Open-Meteo's values for the hour before a time are stored here with the hour that begins there.
    static func forecast(_ body: [UInt8], now: Int64) throws(ProviderError) -> Forecast {
        let hourly: Answer.Hourly
        do { hourly = try JSONDecoder().decode(Answer.self, from: Data(body)).hourly } catch {
            throw ProviderError(.malformedAnswer, detail: "Open-Meteo's forecast: \(error)")
        }
        func value(_ series: [Double?]?, _ index: Int) -> Double? {
            guard let series, series.indices.contains(index) else { return nil }
            return series[index]
        }
        let steps = hourly.time.prefix(1000).enumerated().map { index, time in
            var step = Forecast.Step(time: time, length: 3600)
            step.temperature = Plausible.temperature(value(hourly.temperature_2m, index))
            step.apparentTemperature = Plausible.temperature(
                value(hourly.apparent_temperature, index)
            )
            step.dewPoint = Plausible.temperature(value(hourly.dew_point_2m, index))
            step.humidity = Plausible.percent(value(hourly.relative_humidity_2m, index))
            step.pressure = Plausible.pressure(value(hourly.pressure_msl, index))
            step.wind = Plausible.wind(value(hourly.wind_speed_10m, index))
            step.windDirection = Plausible.direction(value(hourly.wind_direction_10m, index))
            step.cloud = Plausible.percent(value(hourly.cloud_cover, index))
            step.lowCloud = Plausible.percent(value(hourly.cloud_cover_low, index))
            step.middleCloud = Plausible.percent(value(hourly.cloud_cover_mid, index))
            step.highCloud = Plausible.percent(value(hourly.cloud_cover_high, index))
            step.sky = value(hourly.weather_code, index).flatMap { Int(exactly: $0) }
                .flatMap { Sky(code: $0) }
            step.gust = Plausible.wind(value(hourly.wind_gusts_10m, index + 1))
            step.precipitation = Plausible.precipitation(value(hourly.precipitation, index + 1))
            step.precipitationProbability = Plausible.percent(
                value(hourly.precipitation_probability, index + 1)
            )
            return step
        }
        return try Forecast(steps, now: now)
    }

    /// Why a request is refused: `{"error": true, "reason": "…"}`.
    static func reason(_ body: [UInt8]) -> String? {
        struct Refusal: Decodable { var reason: String }
        return (try? JSONDecoder().decode(Refusal.self, from: Data(body)))?.reason
    }

    // MARK: Places

    /// The path of a search; a name may have any characters.
    static func searchPath(_ name: String) -> String {
        var escaped = ""
        for byte in name.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A:
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                escaped += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return "/v1/search?name=\(escaped)&count=20&format=json&language=en"
    }

    private struct Places: Decodable {
        var results: [FoundPlace]?
    }

    /// The places of an answer that lie somewhere on Earth; none where the answer names none.
    static func places(_ body: [UInt8]) throws(ProviderError) -> [FoundPlace] {
        do {
            let found = try JSONDecoder().decode(Places.self, from: Data(body)).results ?? []
            return found.filter {
                (-90...90).contains($0.latitude) && (-180...180).contains($0.longitude)
            }
        } catch {
            throw ProviderError(.malformedAnswer, detail: "Open-Meteo's places: \(error)")
        }
    }
}

/// A place in the results of Open-Meteo's search; empty fields are left out.
struct FoundPlace: Decodable, Hashable, Sendable {
    var name: String
    var latitude: Double
    var longitude: Double
    var timezone: String?
    var country: String?
    var country_code: String?
    var admin1: String?
    var admin2: String?

    /// Whether the place lies in what a person wrote after a comma: a country, its two letters, or a part
    /// of it.
    func lies(in wish: String) -> Bool {
        let wish = Self.plain(wish)
        return [country, country_code, admin1, admin2].contains { $0.map(Self.plain) == wish }
    }

    /// As far as letters, capitals and accents aside.
    static func plain(_ text: String) -> String {
        text.trimmingCharacters(in: .whitespaces)
            .folding(options: [.caseInsensitive, .diacriticInsensitive], locale: nil)
    }

    /// The place with what distinguishes it from others of its name: at most 200 characters, none of which
    /// affects a terminal, since files contain it that people read there.
    var title: String {
        var parts: [String] = [name]
        for part in [admin1, country].compactMap(\.self) where parts.last != part {
            parts.append(part)
        }
        let shown = parts.joined(separator: ", ").unicodeScalars.filter {
            ![.control, .format].contains($0.properties.generalCategory)
        }
        return String(String(String.UnicodeScalarView(shown)).prefix(200))
    }
}
