import Foundation

/// Where sun and moon stand, good to a minute or two of their rising and setting: the low-precision
/// formulas of the Astronomical Almanac for the sun, and those of Montenbruck and Pfleger, "Astronomy on
/// the Personal Computer" (chapter 3, "Mini-Moon"), for the moon.
struct SunAndMoon: Sendable {
    /// Degrees, north of the equator.
    let latitude: Double
    /// Degrees, east of Greenwich.
    let longitude: Double

    /// What crosses a height above the horizon.
    enum Body: Sendable {
        case sun
        case moon
    }

    /// The height of a centre when the upper edge touches the horizon, with refraction: degrees.
    ///
    /// The moon is so near that its parallax counts.
    static func horizon(_ body: Body) -> Double { body == .sun ? -0.833 : 0.125 }

    /// Degrees above the horizon, at a moment in seconds since 1970.
    func height(of body: Body, at time: Double) -> Double {
        let days = time / 86_400 - 10_957.5
        let place = body == .sun ? Self.sun(days) : Self.moon(days)
        let sidereal = 280.46061837 + 360.98564736629 * days + longitude
        let hourAngle = Self.radians(sidereal) - place.ascension
        let north = Self.radians(latitude)
        let sine =
            sin(north) * sin(place.declination)
            + cos(north) * cos(place.declination) * cos(hourAngle)
        return asin(min(1, max(-1, sine))) * 180 / .pi
    }

    /// When a body comes above a height and goes below it, the first time each within a period.
    func crossings(
        of body: Body,
        height: Double,
        from start: Int64,
        to end: Int64
    ) -> (rise: Int64?, set: Int64?) {
        var (rise, set): (Int64?, Int64?) = (nil, nil)
        let step: Int64 = 600
        var time = start
        var before = self.height(of: body, at: Double(start)) - height
        while time < end, rise == nil || set == nil {
            let next = min(time + step, end)
            let after = self.height(of: body, at: Double(next)) - height
            if (before < 0) != (after < 0) {
                let rises = before < 0
                let found = crossing(of: body, height, Double(time), Double(next), rises: rises)
                if before < 0 { rise = rise ?? found } else { set = set ?? found }
            }
            (time, before) = (next, after)
        }
        return (rise, set)
    }

    private func crossing(
        of body: Body,
        _ height: Double,
        _ start: Double,
        _ end: Double,
        rises: Bool
    ) -> Int64 {
        var (low, high) = (start, end)
        while high - low > 1 {
            let middle = (low + high) / 2
            if (self.height(of: body, at: middle) < height) == rises {
                low = middle
            } else {
                high = middle
            }
        }
        return Int64(low.rounded())
    }

    /// How far the moon is ahead of the sun, in degrees: 0 new, 90 first quarter, 180 full.
    static func phase(at time: Double) -> Double {
        let days = time / 86_400 - 10_957.5
        let turns = (moon(days).longitude - sun(days).longitude) / 360
        return (turns - turns.rounded(.down)) * 360
    }

    /// How much of the moon's face is lit, in percent.
    static func lit(at time: Double) -> Double {
        (1 - cos(phase(at: time) * .pi / 180)) * 50
    }

    /// When the moon next has a phase, in degrees; it takes a month at most.
    static func next(phase wanted: Double, after time: Int64) -> Int64? {
        func ahead(_ time: Double) -> Double {
            let difference = (phase(at: time) - wanted) / 360
            return (difference - difference.rounded(.down)) * 360
        }
        var moment = Double(time)
        for _ in 0..<31 * 8 {
            let next = moment + 3 * 3600
            if ahead(moment) > 270, ahead(next) < 90 {
                var (low, high) = (moment, next)
                while high - low > 1 {
                    let middle = (low + high) / 2
                    if ahead(middle) > 180 { low = middle } else { high = middle }
                }
                return Int64(low.rounded())
            }
            moment = next
        }
        return nil
    }

    /// The phase's name.
    static func name(ofPhase degrees: Double) -> String {
        let names = [
            "new moon", "waxing crescent", "first quarter", "waxing gibbous", "full moon",
            "waning gibbous", "last quarter", "waning crescent",
        ]
        let eighth = ((degrees + 22.5) / 45).rounded(.down)
        return names[(Int(eighth) % 8 + 8) % 8]
    }

    // MARK: Places in the sky

    /// Radians, but for `longitude` along the ecliptic, in degrees.
    private struct Place {
        let longitude: Double
        let ascension: Double
        let declination: Double

        init(longitude: Double, latitude: Double, days: Double) {
            self.longitude = longitude
            let (east, north) = (radians(longitude), radians(latitude))
            let tilt = radians(23.439 - 0.00000036 * days)
            ascension = atan2(sin(east) * cos(tilt) - tan(north) * sin(tilt), cos(east))
            let sine = sin(north) * cos(tilt) + cos(north) * sin(tilt) * sin(east)
            declination = asin(min(1, max(-1, sine)))
        }
    }

    private static func radians(_ degrees: Double) -> Double {
        degrees.truncatingRemainder(dividingBy: 360) * .pi / 180
    }

    private static func sun(_ days: Double) -> Place {
        let anomaly = radians(357.529 + 0.98560028 * days)
        let mean = 280.459 + 0.98564736 * days
        let longitude = mean + 1.915 * sin(anomaly) + 0.020 * sin(2 * anomaly)
        return Place(longitude: longitude, latitude: 0, days: days)
    }

    private static func moon(_ days: Double) -> Place {
        let centuries = days / 36_525
        func turn(_ start: Double, _ speed: Double) -> Double {
            let turns = start + speed * centuries
            return (turns - turns.rounded(.down)) * 2 * .pi
        }
        let mean = turn(0.606433, 1336.855225)
        let moon = turn(0.374897, 1325.552410)
        let sun = turn(0.993133, 99.997361)
        let apart = turn(0.827361, 1236.853086)
        let node = turn(0.259086, 1342.227825)
        // Seconds of arc.
        var east = 22_640 * sin(moon) - 4586 * sin(moon - 2 * apart) + 2370 * sin(2 * apart)
        east += 769 * sin(2 * moon) - 668 * sin(sun) - 412 * sin(2 * node)
        east += -212 * sin(2 * moon - 2 * apart) - 206 * sin(moon + sun - 2 * apart)
        east += 192 * sin(moon + 2 * apart) - 165 * sin(sun - 2 * apart) - 125 * sin(apart)
        east += -110 * sin(moon + sun) + 148 * sin(moon - sun) - 55 * sin(2 * node - 2 * apart)
        let second = Double.pi / 648_000
        let swing = node + (east + 412 * sin(2 * node) + 541 * sin(sun)) * second
        let far = node - 2 * apart
        var north = 18_520 * sin(swing) - 526 * sin(far) + 44 * sin(moon + far)
        north += -31 * sin(far - moon) - 23 * sin(sun + far) + 11 * sin(far - sun)
        north += -25 * sin(node - 2 * moon) + 21 * sin(node - moon)
        return Place(
            longitude: mean * 180 / .pi + east / 3600,
            latitude: north / 3600,
            days: days
        )
    }
}
