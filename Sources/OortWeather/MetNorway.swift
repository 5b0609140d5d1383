import Foundation
import OortModel

/// MET Norway's protocol: <https://api.met.no/doc/ForecastJSON> and
/// <https://api.met.no/weatherapi/locationforecast/2.0/documentation>.
enum MetNorway {
    /// The path of a place's forecast; more than four digits after the point are refused with 403.
    static func path(of place: WeatherPlace) -> String {
        "/weatherapi/locationforecast/2.0/complete?lat=\(Decimal.text(place.latitude, 4))"
            + "&lon=\(Decimal.text(place.longitude, 4))"
    }

    private struct Answer: Decodable {
        struct Properties: Decodable { var timeseries: [Entry] }
        struct Entry: Decodable {
            var time: String
            var data: Values
        }
        struct Values: Decodable {
            var instant: Instant
            var next_1_hours: Period?
            var next_6_hours: Period?
        }
        struct Instant: Decodable { var details: Details? }
        struct Period: Decodable {
            struct Summary: Decodable { var symbol_code: String? }
            var summary: Summary?
            var details: Amounts?
        }
        struct Details: Decodable {
            var air_temperature: Double?
            var air_pressure_at_sea_level: Double?
            var cloud_area_fraction: Double?
            var cloud_area_fraction_high: Double?
            var cloud_area_fraction_low: Double?
            var cloud_area_fraction_medium: Double?
            var dew_point_temperature: Double?
            var relative_humidity: Double?
            var wind_from_direction: Double?
            var wind_speed: Double?
            var wind_speed_of_gust: Double?
        }
        struct Amounts: Decodable {
            var precipitation_amount: Double?
            var probability_of_precipitation: Double?
        }

        var properties: Properties
    }

    /// An answer as a forecast.
    ///
    /// The first two to three days come by the hour, later ones in steps of six; the last entry is of a
    /// moment and of no period.
    static func forecast(_ body: [UInt8], now: Int64) throws(ProviderError) -> Forecast {
        let entries: [Answer.Entry]
        do {
            entries = try JSONDecoder().decode(Answer.self, from: Data(body)).properties.timeseries
        } catch {
            throw ProviderError(.malformedAnswer, detail: "MET Norway's forecast: \(error)")
        }
        let steps = entries.prefix(1000).compactMap { entry -> Forecast.Step? in
            guard let time = Timestamp(rfc3339: entry.time)?.seconds else { return nil }
            let hour = entry.data.next_1_hours
            guard let period = hour ?? entry.data.next_6_hours else { return nil }
            var step = Forecast.Step(time: time, length: hour == nil ? 6 * 3600 : 3600)
            let details = entry.data.instant.details
            step.temperature = Plausible.temperature(details?.air_temperature)
            step.dewPoint = Plausible.temperature(details?.dew_point_temperature)
            step.humidity = Plausible.percent(details?.relative_humidity)
            step.pressure = Plausible.pressure(details?.air_pressure_at_sea_level)
            step.wind = Plausible.wind(details?.wind_speed)
            step.gust = Plausible.wind(details?.wind_speed_of_gust)
            step.windDirection = Plausible.direction(details?.wind_from_direction)
            step.cloud = Plausible.percent(details?.cloud_area_fraction)
            step.lowCloud = Plausible.percent(details?.cloud_area_fraction_low)
            step.middleCloud = Plausible.percent(details?.cloud_area_fraction_medium)
            step.highCloud = Plausible.percent(details?.cloud_area_fraction_high)
            step.precipitation = Plausible.precipitation(period.details?.precipitation_amount)
            step.precipitationProbability = Plausible.percent(
                period.details?.probability_of_precipitation
            )
            step.sky = period.summary?.symbol_code.flatMap { Sky(symbol: $0) }
            return step
        }
        return try Forecast(steps, now: now)
    }
}
