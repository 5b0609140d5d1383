import Foundation

/// `sun-and-moon.txt`: a fortnight of light for people who are outdoors; nothing is asked for it.
struct SunAndMoonText: Sendable {
    let place: WeatherPlace
    /// The moment, in seconds since 1970.
    let now: Int64

    private var sky: SunAndMoon {
        SunAndMoon(latitude: place.latitude, longitude: place.longitude)
    }

    var text: String {
        var lines = [place.title, String(repeating: "=", count: place.title.count), ""]
        lines.append(
            "Times of \(place.zone.identifier). Golden: the sun is between 6° above and 4° below "
                + "the horizon; blue: between 4° and 6° below."
        )
        let head = [
            "", "blue from", "golden from", "sunrise", "golden until", "golden from", "sunset",
            "blue from", "blue until", "moonrise", "moonset", "moon",
        ]
        lines += [""] + WeatherReport.aligned([head] + (0..<14).compactMap(row)) + [""]
        let phase = SunAndMoon.phase(at: Double(now))
        let lit = Decimal.text(SunAndMoon.lit(at: Double(now)), 0)
        lines.append("Now: \(SunAndMoon.name(ofPhase: phase)), \(lit) % lit.")
        let phases = [(0.0, "New"), (90, "First quarter"), (180, "Full"), (270, "Last quarter")]
        for (degrees, name) in phases {
            guard let time = SunAndMoon.next(phase: degrees, after: now) else { continue }
            let local = LocalTime(time, in: place.zone)
            lines.append("\(name): \(local.short) \(local.year), \(local.clock)")
        }
        lines += ["", "Computed on this machine; mountains and houses are not known."]
        return lines.joined(separator: "\n") + "\n"
    }

    private func row(_ offset: Int) -> [String]? {
        let noon = now + Int64(offset) * 86_400
        guard let (start, end) = day(around: noon) else { return nil }
        func crossings(_ body: SunAndMoon.Body, _ height: Double) -> (String, String) {
            let found = sky.crossings(of: body, height: height, from: start, to: end)
            return (clock(found.rise), clock(found.set))
        }
        let blue = crossings(.sun, -6)
        let golden = crossings(.sun, -4)
        let sun = crossings(.sun, SunAndMoon.horizon(.sun))
        let high = crossings(.sun, 6)
        let moon = crossings(.moon, SunAndMoon.horizon(.moon))
        let lit = SunAndMoon.lit(at: Double(start + end) / 2)
        return [
            LocalTime(start, in: place.zone).short, blue.0, golden.0, sun.0, high.0, high.1, sun.1,
            golden.1, blue.1, moon.0, moon.1, Decimal.text(lit, 0) + " %",
        ]
    }

    /// The day by the clocks of the place in which a moment lies: 23 to 25 hours.
    private func day(around time: Int64) -> (start: Int64, end: Int64)? {
        func midnight(_ day: Int64) -> Int64 {
            let guess = day * 86_400
            let offset = place.zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(guess)))
            let first = guess - Int64(offset)
            let second = place.zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(first)))
            return guess - Int64(second)
        }
        let number = LocalTime(time, in: place.zone).day
        let (start, end) = (midnight(number), midnight(number + 1))
        return start < end ? (start, end) : nil
    }

    private func clock(_ time: Int64?) -> String {
        time.map { LocalTime($0, in: place.zone).clock } ?? "-"
    }
}
