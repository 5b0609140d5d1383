import Foundation
import OortModel

/// What programs read: tables with the units in their heads, and JSON.
extension WeatherReport {
    /// `hourly.csv`: a row a step, times with their offset from UTC.
    var hourly: String {
        let degrees = units.temperature.rawValue
        let head = [
            "time", "hours", "temperature_\(degrees)", "feels_like_\(degrees)",
            "dew_point_\(degrees)", "humidity_percent", "pressure_hPa", "wind_\(units.windSign)",
            "gusts_\(units.windSign)", "wind_from_degrees", "precipitation_\(units.rainSign)",
            "precipitation_percent", "clouds_percent", "clouds_low_percent",
            "clouds_middle_percent", "clouds_high_percent", "weather", "fetched",
        ]
        let rows = steps.map { step in
            [
                offsetTime(step.time), "\(step.length / 3600)", temperature(step.temperature),
                temperature(step.apparentTemperature), temperature(step.dewPoint),
                whole(step.humidity), whole(step.pressure), wind(step.wind), wind(step.gust),
                whole(step.windDirection), rain(step.precipitation),
                whole(step.precipitationProbability), whole(step.cloud), whole(step.lowCloud),
                whole(step.middleCloud), whole(step.highCloud), step.sky?.words,
                offsetTime(answer.fetched),
            ]
        }
        return Self.table(head, rows)
    }

    /// `daily.csv`: a row a day by the clocks of the place.
    var daily: String {
        let degrees = units.temperature.rawValue
        let head = [
            "date", "lowest_\(degrees)", "highest_\(degrees)", "precipitation_\(units.rainSign)",
            "precipitation_percent", "wind_\(units.windSign)", "gusts_\(units.windSign)",
            "clouds_percent", "weather", "fetched",
        ]
        let rows = days.map { day in
            [
                LocalTime(day.start, in: place.zone).date, temperature(day.lowest),
                temperature(day.highest), rain(day.precipitation),
                whole(day.precipitationProbability), wind(day.wind), wind(day.gust),
                whole(day.cloud), day.sky?.words, offsetTime(answer.fetched),
            ]
        }
        return Self.table(head, rows)
    }

    /// Lines end as RFC 4180 has it not, but as every program on Linux reads them; no cell has a comma.
    private static func table(_ head: [String], _ rows: [[String?]]) -> String {
        ([head] + rows).map { $0.map { $0 ?? "" }.joined(separator: ",") + "\n" }.joined()
    }

    /// A time with its offset, as in `2026-11-23T14:00:00+01:00`.
    func offsetTime(_ time: Int64) -> String {
        let local = LocalTime(time, in: place.zone)
        let offset = place.zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(time)))
        let minutes = abs(offset) / 60
        let zone = String(
            format: "%@%02d:%02d",
            locale: Locale(identifier: "en_US_POSIX"),
            offset < 0 ? "-" : "+",
            minutes / 60,
            minutes % 60
        )
        let second = time - time.flooredQuotient(by: 60) * 60
        return "\(local.date)T\(local.clock):\(second < 10 ? "0" : "")\(second)\(zone)"
    }

    // MARK: JSON

    private struct Document: Encodable {
        struct Place: Encodable {
            var name: String
            var latitude: Double
            var longitude: Double
            var time_zone: String
        }
        struct Units: Encodable {
            var temperature: String
            var wind: String
            var precipitation: String
        }
        struct Hour: Encodable {
            var time: String
            var hours: Int64
            var temperature: Double?
            var feels_like: Double?
            var dew_point: Double?
            var humidity: Double?
            var pressure: Double?
            var wind: Double?
            var gusts: Double?
            var wind_from: Double?
            var precipitation: Double?
            var precipitation_probability: Double?
            var clouds: Double?
            var clouds_low: Double?
            var clouds_middle: Double?
            var clouds_high: Double?
            var weather: String?
        }
        struct Day: Encodable {
            var date: String
            var lowest: Double?
            var highest: Double?
            var precipitation: Double?
            var precipitation_probability: Double?
            var wind: Double?
            var gusts: Double?
            var clouds: Double?
            var weather: String?
        }

        var place: Place
        var source: String
        var credit: String
        var fetched: String
        var age_minutes: Int64
        var is_old: Bool
        var units: Units
        var hours: [Hour]
        var days: [Day]
    }

    /// `forecast.json`: all values that the service gave, without those that it did not.
    var json: String {
        let document = Document(
            place: Document.Place(
                name: place.title,
                latitude: place.latitude,
                longitude: place.longitude,
                time_zone: place.zone.identifier
            ),
            source: answer.source.rawValue,
            credit: answer.source.credit,
            fetched: offsetTime(answer.fetched),
            age_minutes: max(0, time - answer.fetched) / 60,
            is_old: isOld,
            units: Document.Units(
                temperature: units.temperature.rawValue,
                wind: units.windSign,
                precipitation: units.rainSign
            ),
            hours: steps.map(hour),
            days: days.map(day)
        )
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // All numbers are finite, so it can be written.
        guard let data = try? encoder.encode(document) else { return "{}\n" }
        return String(decoding: data, as: UTF8.self) + "\n"
    }

    private func rounded(_ value: Double?, _ digits: Int = 1) -> Double? {
        value.flatMap { Double(Decimal.text($0, digits)) }
    }

    private func hour(_ step: Forecast.Step) -> Document.Hour {
        Document.Hour(
            time: offsetTime(step.time),
            hours: step.length / 3600,
            temperature: rounded(step.temperature.map { units.shown(temperature: $0) }),
            feels_like: rounded(step.apparentTemperature.map { units.shown(temperature: $0) }),
            dew_point: rounded(step.dewPoint.map { units.shown(temperature: $0) }),
            humidity: rounded(step.humidity),
            pressure: rounded(step.pressure),
            wind: rounded(step.wind.map { units.shown(wind: $0) }),
            gusts: rounded(step.gust.map { units.shown(wind: $0) }),
            wind_from: rounded(step.windDirection),
            precipitation: rounded(step.precipitation.map { units.shown(rain: $0) }, 2),
            precipitation_probability: rounded(step.precipitationProbability),
            clouds: rounded(step.cloud),
            clouds_low: rounded(step.lowCloud),
            clouds_middle: rounded(step.middleCloud),
            clouds_high: rounded(step.highCloud),
            weather: step.sky?.words
        )
    }

    private func day(_ day: Day) -> Document.Day {
        Document.Day(
            date: LocalTime(day.start, in: place.zone).date,
            lowest: rounded(day.lowest.map { units.shown(temperature: $0) }),
            highest: rounded(day.highest.map { units.shown(temperature: $0) }),
            precipitation: rounded(day.precipitation.map { units.shown(rain: $0) }, 2),
            precipitation_probability: rounded(day.precipitationProbability),
            wind: rounded(day.wind.map { units.shown(wind: $0) }),
            gusts: rounded(day.gust.map { units.shown(wind: $0) }),
            clouds: rounded(day.cloud),
            weather: day.sky?.words
        )
    }
}
