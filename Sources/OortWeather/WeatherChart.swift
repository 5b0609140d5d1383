import Foundation

/// `chart.svg`: temperature, rain, wind and the layers of clouds over the hours to come, with the nights.
struct WeatherChart: Sendable {
    private let report: WeatherReport
    private let steps: [Forecast.Step]
    private let start: Int64
    private let end: Int64

    /// How far ahead it looks, in seconds.
    private static let length: Int64 = 7 * 86_400
    private static let width = 1000.0
    private static let left = 70.0
    private static let right = 985.0

    init(_ report: WeatherReport) {
        self.report = report
        let steps = report.steps.filter { $0.time < report.time + Self.length }
        self.steps = steps
        start = steps.first?.time ?? report.time
        end = max(start + 3600, steps.last.map { $0.time + $0.length } ?? 0)
    }

    /// The picture, of a document of its own.
    var svg: String {
        var parts = [
            """
            <svg xmlns="http://www.w3.org/2000/svg" width="1000" height="640" \
            viewBox="0 0 1000 640" font-family="sans-serif" font-size="12">
            """,
            "<title>\(Self.escaped("The weather at \(report.place.title)"))</title>",
            rectangle(0, 0, Self.width, 640, "#ffffff"),
            text(report.place.title, 70, 26, size: 18, weight: "bold"),
            text("\(report.source). \(report.answer.source.credit)", 70, 44, fill: "#666666"),
        ]
        parts += nights + days
        parts += temperature(top: 78, bottom: 250)
        parts += rain(top: 270, bottom: 350)
        parts += wind(top: 370, bottom: 460)
        parts += clouds(top: 480)
        parts.append("</svg>")
        return parts.joined(separator: "\n") + "\n"
    }

    // MARK: The frame

    private func x(_ time: Int64) -> Double {
        let part = Double(time - start) / Double(end - start)
        return Self.left + min(1, max(0, part)) * (Self.right - Self.left)
    }

    /// The hours in which the sun is below the horizon, grey.
    private var nights: [String] {
        let sky = SunAndMoon(
            latitude: report.place.latitude,
            longitude: report.place.longitude
        )
        var parts: [String] = []
        var began: Int64?
        var time = start
        while time <= end {
            let height = sky.height(of: .sun, at: Double(time))
            let isDark = height < SunAndMoon.horizon(.sun) && time < end
            if isDark, began == nil { began = time }
            if !isDark, let from = began {
                parts.append(rectangle(x(from), 60, x(time) - x(from), 520, "#eef0f6"))
                began = nil
            }
            time += 600
        }
        return parts
    }

    /// A line and a name for each day by the clocks of the place.
    private var days: [String] {
        var parts: [String] = []
        var known: Int64?
        var time = start
        while time < end {
            let local = LocalTime(time, in: report.place.zone)
            if local.day != known {
                if known != nil { parts.append(line(x(time), 60, x(time), 600, "#b8bcc8")) }
                // The rest of a day may be too short for its name.
                let rest = Int64(24 - local.hour) * 3600
                if x(time + rest) - x(time) > 75 {
                    parts.append(text(local.short, x(time) + 4, 598))
                }
                known = local.day
            }
            time += 3600
        }
        return parts
    }

    private func scale(
        _ title: String,
        _ range: ClosedRange<Double>,
        _ digits: Int,
        top: Double,
        bottom: Double
    ) -> [String] {
        var parts = [text(title, Self.left, top - 6, fill: "#444444", weight: "bold")]
        for part in [0.0, 0.5, 1] {
            let value = range.lowerBound + part * (range.upperBound - range.lowerBound)
            let y = bottom - part * (bottom - top)
            parts.append(line(Self.left, y, Self.right, y, "#d8dbe4"))
            parts.append(text(Decimal.text(value, digits), 62, y + 4, anchor: "end"))
        }
        return parts
    }

    private func curve(
        _ points: [(Int64, Double?)],
        _ range: ClosedRange<Double>,
        top: Double,
        bottom: Double,
        stroke: String
    ) -> [String] {
        var runs: [[String]] = [[]]
        for (time, value) in points {
            guard let value else {
                runs.append([])
                continue
            }
            let part = (value - range.lowerBound) / (range.upperBound - range.lowerBound)
            let y = bottom - min(1, max(0, part)) * (bottom - top)
            runs[runs.count - 1].append("\(number(x(time))),\(number(y))")
        }
        return runs.filter { $0.count > 1 }.map { run in
            #"<polyline points="\#(run.joined(separator: " "))" fill="none" "#
                + #"stroke="\#(stroke)" stroke-width="2" stroke-linejoin="round"/>"#
        }
    }

    // MARK: What is shown

    private func temperature(top: Double, bottom: Double) -> [String] {
        let values = steps.map { step in
            (step.time, step.temperature.map { report.units.shown(temperature: $0) })
        }
        let all = values.compactMap(\.1)
        let low = ((all.min() ?? 0) / 5).rounded(.down) * 5
        let high = max(low + 5, ((all.max() ?? 0) / 5).rounded(.up) * 5)
        return scale(
            "Temperature, \(report.units.temperatureSign)",
            low...high,
            1,
            top: top,
            bottom: bottom
        ) + curve(values, low...high, top: top, bottom: bottom, stroke: "#d3382c")
    }

    private func rain(top: Double, bottom: Double) -> [String] {
        // By the hour, so that steps of six hours are no towers.
        let values = steps.map { step in
            step.precipitation.map {
                report.units.shown(rain: $0) * 3600 / Double(max(3600, step.length))
            }
        }
        let least = report.units.rain == .millimetres ? 1.0 : 0.05
        let high = max(least, values.compactMap(\.self).max() ?? 0)
        var parts = scale(
            "Rain, \(report.units.rainSign) an hour",
            0...high,
            report.units.rainDigits,
            top: top,
            bottom: bottom
        )
        for (step, value) in zip(steps, values) {
            guard let value, value > 0 else { continue }
            let height = value / high * (bottom - top)
            let (from, to) = (x(step.time), x(step.time + step.length))
            parts.append(
                rectangle(from, bottom - height, max(0.5, to - from - 0.5), height, "#2f6fce")
            )
        }
        return parts
    }

    private func wind(top: Double, bottom: Double) -> [String] {
        let speeds = steps.map { step in
            (step.time, step.wind.map { report.units.shown(wind: $0) })
        }
        let gusts = steps.map { step in
            (step.time, step.gust.map { report.units.shown(wind: $0) })
        }
        let most = (speeds + gusts).compactMap(\.1).max() ?? 0
        let high = max(10, (most / 10).rounded(.up) * 10)
        return scale(
            "Wind and gusts, \(report.units.windSign)",
            0...high,
            0,
            top: top,
            bottom: bottom
        ) + curve(gusts, 0...high, top: top, bottom: bottom, stroke: "#b9c9a5")
            + curve(speeds, 0...high, top: top, bottom: bottom, stroke: "#3d7f3a")
    }

    /// A band for each layer, the darker the more of the sky it covers.
    private func clouds(top: Double) -> [String] {
        let layers: [(String, @Sendable (Forecast.Step) -> Double?)] = [
            ("high", \.highCloud), ("middle", \.middleCloud), ("low", \.lowCloud),
        ]
        var parts = [text("Clouds", Self.left, top - 6, fill: "#444444", weight: "bold")]
        for (index, layer) in layers.enumerated() {
            let y = top + Double(index) * 32
            parts.append(text(layer.0, 62, y + 18, anchor: "end"))
            parts.append(rectangle(Self.left, y, Self.right - Self.left, 28, "#d7e8fa"))
            for step in steps {
                guard let cover = layer.1(step), cover > 0 else { continue }
                let (from, to) = (x(step.time), x(step.time + step.length))
                parts.append(
                    rectangle(from, y, to - from, 28, "#5c6470", opacity: cover / 100)
                )
            }
        }
        return parts
    }

    // MARK: Marks

    private func number(_ value: Double) -> String { Decimal.text(value, 2) }

    private func line(
        _ x1: Double,
        _ y1: Double,
        _ x2: Double,
        _ y2: Double,
        _ stroke: String
    ) -> String {
        #"<line x1="\#(number(x1))" y1="\#(number(y1))" x2="\#(number(x2))" y2="\#(number(y2))" "#
            + #"stroke="\#(stroke)"/>"#
    }

    private func rectangle(
        _ x: Double,
        _ y: Double,
        _ width: Double,
        _ height: Double,
        _ fill: String,
        opacity: Double = 1
    ) -> String {
        #"<rect x="\#(number(x))" y="\#(number(y))" width="\#(number(width))" "#
            + #"height="\#(number(height))" fill="\#(fill)" fill-opacity="\#(number(opacity))"/>"#
    }

    private func text(
        _ words: String,
        _ x: Double,
        _ y: Double,
        size: Int = 12,
        fill: String = "#222222",
        anchor: String = "start",
        weight: String = "normal"
    ) -> String {
        #"<text x="\#(number(x))" y="\#(number(y))" font-size="\#(size)" fill="\#(fill)" "#
            + #"text-anchor="\#(anchor)" font-weight="\#(weight)">\#(Self.escaped(words))</text>"#
    }

    /// A text as XML may have it: names come from outside.
    static func escaped(_ words: String) -> String {
        var escaped = String.UnicodeScalarView()
        for scalar in words.unicodeScalars {
            switch scalar {
            case "&": escaped.append(contentsOf: "&amp;".unicodeScalars)
            case "<": escaped.append(contentsOf: "&lt;".unicodeScalars)
            case ">": escaped.append(contentsOf: "&gt;".unicodeScalars)
            case "\"": escaped.append(contentsOf: "&quot;".unicodeScalars)
            default:
                // Most control characters and the last two of the plane are in no XML.
                let isAllowed = scalar.value >= 0x20 && !(0xFFFE...0xFFFF).contains(scalar.value)
                escaped.append(isAllowed ? scalar : "\u{FFFD}")
            }
        }
        return String(escaped)
    }
}
