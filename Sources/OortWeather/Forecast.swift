import OortModel

/// The weather to come at a place, in one form for all services: degrees Celsius, metres a second,
/// millimetres, hectopascals, percent.
///
/// A number that no weather on Earth has counts as missing.
public struct Forecast: Hashable, Sendable {
    /// A time and the period that begins there: one hour, further ahead six.
    public struct Step: Hashable, Sendable {
        /// Seconds since 1970 in UTC.
        public var time: Int64
        /// The length of the period, in seconds.
        public var length: Int64
        /// At the time itself.
        public var temperature: Double?
        /// What it feels like, where the service says so.
        public var apparentTemperature: Double?
        /// The temperature at which dew falls.
        public var dewPoint: Double?
        /// Relative, in percent.
        public var humidity: Double?
        /// At sea level.
        public var pressure: Double?
        /// How fast the wind is, ten metres above the ground.
        public var wind: Double?
        /// The fastest gust of the period.
        public var gust: Double?
        /// Where the wind comes from, in degrees: 0 is north, 90 east.
        public var windDirection: Double?
        /// What falls in the period, rain or molten snow.
        public var precipitation: Double?
        /// How likely it is that anything falls.
        public var precipitationProbability: Double?
        /// How much of the sky clouds cover.
        public var cloud: Double?
        /// Clouds and fog of the lowest layer.
        public var lowCloud: Double?
        /// Clouds of the middle layer.
        public var middleCloud: Double?
        /// Clouds of the highest layer.
        public var highCloud: Double?
        /// The weather in a word or two.
        public var sky: Sky?

        init(time: Int64, length: Int64) {
            self.time = time
            self.length = length
        }
    }

    /// The steps in the order of time, at least one.
    public var steps: [Step]

    /// A forecast of steps that the service gave in whatever order, without those that cannot be.
    ///
    /// - Throws: `.malformedAnswer` where nothing is left.
    init(_ steps: [Step], now: Int64) throws(ProviderError) {
        var sound: [Step] = []
        let near = now - 8 * 86_400..<now + 40 * 86_400
        for step in steps.sorted(by: { $0.time < $1.time }) where near.contains(step.time) {
            guard sound.last?.time != step.time else { continue }
            sound.append(step)
            guard sound.count < 1000 else { break }
        }
        guard !sound.isEmpty else {
            throw ProviderError(.malformedAnswer, detail: "the forecast is of no time near today")
        }
        self.steps = sound
    }

    /// The step in whose period a moment lies, or the next one; nil after the end.
    func step(at time: Int64) -> Step? { steps.first { time < $0.time + $0.length } }
}

/// The weather of a period in words, and how much a person minds it.
public struct Sky: Hashable, Sendable {
    /// For people.
    public let words: String
    /// Of several that a day has, the one of the highest rank is shown.
    let rank: Int

    /// By the code of the World Meteorological Organization's table 4677, those that Open-Meteo uses
    /// (<https://open-meteo.com/en/docs>, "WMO Weather interpretation codes"); nil for others.
    init?(code: Int) {
        switch code {
        case 0: self.init("clear", 0)
        case 1: self.init("mainly clear", 1)
        case 2: self.init("partly cloudy", 2)
        case 3: self.init("overcast", 3)
        case 45: self.init("fog", 4)
        case 48: self.init("freezing fog", 5)
        case 51: self.init("light drizzle", 6)
        case 53: self.init("drizzle", 7)
        case 55: self.init("heavy drizzle", 8)
        case 56, 57: self.init("freezing drizzle", 14)
        case 61: self.init("light rain", 9)
        case 63: self.init("rain", 12)
        case 65: self.init("heavy rain", 15)
        case 66, 67: self.init("freezing rain", 18)
        case 71: self.init("light snow", 11)
        case 73: self.init("snow", 14)
        case 75: self.init("heavy snow", 17)
        case 77: self.init("snow grains", 11)
        case 80: self.init("light rain showers", 9)
        case 81: self.init("rain showers", 12)
        case 82: self.init("heavy rain showers", 15)
        case 85: self.init("light snow showers", 11)
        case 86: self.init("heavy snow showers", 17)
        case 95: self.init("thunderstorm", 20)
        case 96, 99: self.init("thunderstorm with hail", 21)
        default: return nil
        }
    }

    /// By MET Norway's symbol, such as `lightrainshowersandthunder_day`
    /// (<https://api.met.no/weatherapi/weathericon/2.0/documentation>); nil for others.
    init?(symbol: String) {
        var rest = symbol.cut(atFirst: "_")?.before ?? symbol[...]
        switch String(rest) {
        case "clearsky": self.init("clear", 0)
        case "fair": self.init("mainly clear", 1)
        case "partlycloudy": self.init("partly cloudy", 2)
        case "cloudy": self.init("overcast", 3)
        case "fog": self.init("fog", 4)
        default:
            var words: [String] = []
            var rank = 12
            // Two of the service's own names have one letter too many: `lightssleetshowersandthunder`.
            for (sign, word, weight) in [("lights", "light", -3), ("light", "light", -3)] {
                guard words.isEmpty, let more = rest.dropping(beginning: sign),
                    sign == "light" || more.begins(with: "s")
                else { continue }
                words.append(word)
                rank += weight
                rest = more
            }
            if words.isEmpty, let more = rest.dropping(beginning: "heavy") {
                words.append("heavy")
                rank += 3
                rest = more
            }
            guard
                let kind = [("rain", 0), ("sleet", 1), ("snow", 2)]
                    .first(where: { rest.begins(with: $0.0) })
            else { return nil }
            words.append(kind.0)
            rank += kind.1
            rest = rest.dropping(beginning: kind.0) ?? rest
            if let more = rest.dropping(beginning: "showers") {
                words.append("showers")
                rest = more
            }
            if rest.isSameText(as: "andthunder") {
                words.append("and thunder")
                rank += 8
            } else if !rest.isEmpty {
                return nil
            }
            self.init(words.joined(separator: " "), rank)
        }
    }

    private init(_ words: String, _ rank: Int) {
        self.words = words
        self.rank = rank
    }
}

/// Numbers of a forecast that can be; all others are none.
enum Plausible {
    static func temperature(_ value: Double?) -> Double? { within(-120...80, value) }
    static func percent(_ value: Double?) -> Double? { within(0...100, value) }
    static func pressure(_ value: Double?) -> Double? { within(500...1200, value) }
    static func wind(_ value: Double?) -> Double? { within(0...200, value) }
    static func direction(_ value: Double?) -> Double? { within(0...360, value) }
    static func precipitation(_ value: Double?) -> Double? { within(0...2000, value) }

    private static func within(_ range: ClosedRange<Double>, _ value: Double?) -> Double? {
        value.flatMap { range.contains($0) ? $0 : nil }
    }
}
