import Foundation

/// In which units a person reads the weather.
public struct WeatherUnits: Hashable, Sendable {
    /// Of temperatures.
    public enum Temperature: String, CaseIterable, Sendable {
        /// Degrees Celsius.
        case celsius
        /// Degrees Fahrenheit.
        case fahrenheit
    }

    /// Of the wind.
    public enum Wind: String, CaseIterable, Sendable {
        /// Kilometres an hour.
        case kilometresPerHour = "km/h"
        /// Metres a second.
        case metresPerSecond = "m/s"
        /// Miles an hour.
        case milesPerHour = "mph"
        /// Knots.
        case knots
    }

    /// Of rain and molten snow.
    public enum Rain: String, CaseIterable, Sendable {
        /// Millimetres, which are litres a square metre.
        case millimetres = "mm"
        /// Inches.
        case inches = "inch"
    }

    /// Of temperatures.
    public var temperature = Temperature.celsius
    /// Of the wind.
    public var wind = Wind.kilometresPerHour
    /// Of rain and molten snow.
    public var rain = Rain.millimetres

    /// Degrees Celsius, kilometres an hour, millimetres.
    public init() {}

    var temperatureSign: String { temperature == .celsius ? "°C" : "°F" }
    var windSign: String { wind.rawValue }
    var rainSign: String { rain == .millimetres ? "mm" : "in" }

    func shown(temperature value: Double) -> Double {
        temperature == .celsius ? value : value * 9 / 5 + 32
    }

    func shown(wind value: Double) -> Double {
        switch wind {
        case .kilometresPerHour: value * 3.6
        case .metresPerSecond: value
        case .milesPerHour: value / 0.44704
        case .knots: value / 0.514444
        }
    }

    func shown(rain value: Double) -> Double { rain == .millimetres ? value : value / 25.4 }

    /// The digits after the point that amounts of rain are shown with.
    var rainDigits: Int { rain == .millimetres ? 1 : 2 }
}

/// Numbers as people and programs read them: a point, and no minus before nothing.
enum Decimal {
    static func text(_ value: Double, _ digits: Int) -> String {
        let text = String(format: "%.\(digits)f", locale: Locale(identifier: "en_US_POSIX"), value)
        guard text.utf8.first == UInt8(ascii: "-"),
            text.utf8.dropFirst().allSatisfy({ $0 == UInt8(ascii: "0") || $0 == 0x2E })
        else { return text }
        return String(text.dropFirst())
    }
}
