import Foundation
import OortModel

/// A place's forecast as a person and programs read it, in a person's units.
struct WeatherReport: Sendable {
    let place: WeatherPlace
    let forecast: Forecast
    let answer: WeatherAnswer
    /// Whether the service could not be asked, although this is no longer fresh.
    let isOld: Bool
    let units: WeatherUnits
    /// The moment of the report, in seconds since 1970.
    let time: Int64

    init(
        place: WeatherPlace,
        forecast: Forecast,
        answer: WeatherAnswer,
        isOld: Bool,
        units: WeatherUnits,
        now: Int64
    ) {
        self.place = place
        self.forecast = forecast
        self.answer = answer
        self.isOld = isOld
        self.units = units
        time = now
    }

    /// When the forecast was fetched, and how old it is where no newer one could be had.
    var source: String {
        let fetched = LocalTime(answer.fetched, in: place.zone)
        let text = "\(answer.source.title), fetched \(fetched.date) \(fetched.clock)"
        guard isOld else { return text }
        return text + ", \(age) ago: the service cannot be reached now"
    }

    private var age: String {
        let minutes = max(0, time - answer.fetched) / 60
        func count(_ number: Int64, _ unit: String) -> String {
            "\(number) \(unit)" + (number == 1 ? "" : "s")
        }
        if minutes < 120 { return count(minutes, "minute") }
        return minutes < 48 * 60 ? count(minutes / 60, "hour") : count(minutes / 1440, "day")
    }

    /// The steps from the present one on.
    var steps: [Forecast.Step] { forecast.steps.filter { time < $0.time + $0.length } }

    // MARK: Numbers

    func temperature(_ value: Double?) -> String? {
        value.map { Decimal.text(units.shown(temperature: $0), 1) }
    }

    func wind(_ value: Double?) -> String? { value.map { Decimal.text(units.shown(wind: $0), 1) } }

    func rain(_ value: Double?) -> String? {
        value.map { Decimal.text(units.shown(rain: $0), units.rainDigits) }
    }

    func whole(_ value: Double?) -> String? { value.map { Decimal.text($0, 0) } }

    // MARK: now.txt

    /// The present hour and the days to come, for people.
    var now: String {
        var lines = [place.title, String(repeating: "=", count: place.title.count), ""]
        let clock = LocalTime(time, in: place.zone)
        lines.append("\(clock.weekday), \(clock.date) \(clock.clock) (\(place.zone.identifier))")
        if let step = forecast.step(at: time) {
            lines += ["", (step.sky?.words).map(Self.capitalised) ?? "The sky is not known"]
            lines += Self.aligned(table(step))
        } else {
            lines += ["", "The forecast ended before now."]
        }
        if !days.isEmpty { lines += [""] + Self.aligned(days.map(row)) }
        lines += ["", source, answer.source.credit]
        return lines.joined(separator: "\n") + "\n"
    }

    private func table(_ step: Forecast.Step) -> [[String]] {
        var rows: [[String]] = []
        if let value = temperature(step.temperature) {
            let felt = temperature(step.apparentTemperature).map {
                ", feels like \($0) \(units.temperatureSign)"
            }
            rows.append(["Temperature", "\(value) \(units.temperatureSign)\(felt ?? "")"])
        }
        if let value = wind(step.wind) {
            let from = step.windDirection.map { " from \(Self.compass($0))" } ?? ""
            let gusts = wind(step.gust).map { ", gusts \($0)" } ?? ""
            rows.append(["Wind", "\(value) \(units.windSign)\(from)\(gusts)"])
        }
        if let value = rain(step.precipitation) {
            let hours = step.length / 3600
            let chance = whole(step.precipitationProbability).map { ", \($0) % likely" } ?? ""
            let period = hours == 1 ? "this hour" : "in \(hours) hours"
            rows.append(["Rain", "\(value) \(units.rainSign) \(period)\(chance)"])
        }
        if let value = whole(step.cloud) {
            let layers = [
                whole(step.lowCloud).map { "low \($0)" },
                whole(step.middleCloud).map { "middle \($0)" },
                whole(step.highCloud).map { "high \($0)" },
            ].compactMap(\.self)
            let detail = layers.isEmpty ? "" : " (\(layers.joined(separator: ", ")))"
            rows.append(["Clouds", "\(value) %\(detail)"])
        }
        if let value = whole(step.humidity) {
            let dew = temperature(step.dewPoint).map { ", dew point \($0)" } ?? ""
            rows.append(["Humidity", "\(value) %\(dew)"])
        }
        if let value = whole(step.pressure) { rows.append(["Pressure", "\(value) hPa"]) }
        return rows
    }

    private func row(_ day: Day) -> [String] {
        let low = whole(day.lowest.map { units.shown(temperature: $0) })
        let high = whole(day.highest.map { units.shown(temperature: $0) })
        return [
            LocalTime(day.start, in: place.zone).short,
            low.flatMap { low in high.map { "\(low) to \($0) \(units.temperatureSign)" } } ?? "",
            rain(day.precipitation).map { "\($0) \(units.rainSign)" } ?? "",
            wind(day.wind).map { "\($0) \(units.windSign)" } ?? "", day.sky?.words ?? "",
        ]
    }

    /// Rows whose columns begin below each other.
    static func aligned(_ rows: [[String]]) -> [String] {
        var widths: [Int] = []
        for row in rows {
            for (index, cell) in row.enumerated() {
                if index == widths.count { widths.append(0) }
                widths[index] = max(widths[index], cell.count)
            }
        }
        return rows.map { row in
            var line = ""
            for (index, cell) in row.enumerated() {
                line += cell
                if index < row.count - 1 {
                    line += String(repeating: " ", count: widths[index] - cell.count + 2)
                }
            }
            while line.hasSuffix(" ") { line.removeLast() }
            return line
        }
    }

    private static func capitalised(_ words: String) -> String {
        words.prefix(1).uppercased() + words.dropFirst()
    }

    private static func compass(_ degrees: Double) -> String {
        let names = [
            "north", "northeast", "east", "southeast", "south", "southwest", "west",
            "northwest",
        ]
        return names[Int(((degrees + 22.5) / 45).rounded(.down)) % 8]
    }

    // MARK: Days

    /// A day by the clocks of the place, as far as the forecast goes.
    struct Day: Hashable, Sendable {
        /// The first moment of it that the report covers, in seconds since 1970.
        var start: Int64
        var lowest: Double?
        var highest: Double?
        var precipitation: Double?
        var precipitationProbability: Double?
        /// The fastest of its hours.
        var wind: Double?
        var gust: Double?
        /// The average.
        var cloud: Double?
        /// The most that is to be minded.
        var sky: Sky?
    }

    /// The days from today on.
    var days: [Day] {
        let today = LocalTime(time, in: place.zone).day
        var days: [(number: Int64, steps: [Forecast.Step])] = []
        for step in forecast.steps {
            let day = LocalTime(step.time, in: place.zone).day
            guard day >= today else { continue }
            if days.last?.number == day {
                days[days.count - 1].steps.append(step)
            } else {
                days.append((day, [step]))
            }
        }
        // Of a day that has hardly begun when the forecast ends nothing can be said.
        let told = days.filter { day in
            day.number == today || day.steps.reduce(0) { $0 + $1.length } >= 12 * 3600
        }
        return told.map { Self.day($0.steps) }
    }

    private static func day(_ steps: [Forecast.Step]) -> Day {
        func all(_ value: (Forecast.Step) -> Double?) -> [Double] { steps.compactMap(value) }
        let rain = all(\.precipitation)
        let clouds = all(\.cloud)
        return Day(
            start: steps.first?.time ?? 0,
            lowest: all(\.temperature).min(),
            highest: all(\.temperature).max(),
            precipitation: rain.isEmpty ? nil : rain.reduce(0, +),
            precipitationProbability: all(\.precipitationProbability).max(),
            wind: all(\.wind).max(),
            gust: all(\.gust).max(),
            cloud: clouds.isEmpty ? nil : clouds.reduce(0, +) / Double(clouds.count),
            sky: steps.compactMap(\.sky).max { $0.rank < $1.rank }
        )
    }
}
