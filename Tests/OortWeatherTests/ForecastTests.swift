import Foundation
import OortModel
import Testing

@testable import OortWeather

/// 2026-11-23 12:00:00 UTC.
let noon: Int64 = 1_795_435_200

@Suite("Forecasts in the services' own forms")
struct ForecastTests {
    /// As Open-Meteo answers with `timeformat=unixtime`.
    static let openMeteo = """
        {"latitude":39.5,"longitude":-0.375,"generationtime_ms":0.12,"utc_offset_seconds":0,
        "timezone":"GMT","timezone_abbreviation":"GMT","elevation":16.0,
        "hourly_units":{"time":"unixtime","temperature_2m":"°C","precipitation":"mm"},
        "hourly":{"time":[1795431600,1795435200,1795438800],"temperature_2m":[17.4,18.1,null],
        "precipitation":[0.0,0.2,1.5],"wind_speed_10m":[3.1,4.0,4.4],"weather_code":[2,61,3],
        "cloud_cover_low":[10,20,30],"wind_gusts_10m":[6.0,7.5,9.0]}}
        """

    /// The excerpt of <https://api.met.no/doc/ForecastJSON>, with a last entry of no period.
    static let metNorway = """
        {"type":"Feature","geometry":{"type":"Point","coordinates":[10,60.1,267]},"properties":{
        "meta":{"updated_at":"2026-11-23T11:04:26Z","units":{"air_temperature":"celsius"}},
        "timeseries":[{"time":"2026-11-23T12:00:00Z","data":{"instant":{"details":{
        "air_pressure_at_sea_level":1020.5,"air_temperature":20.7,"cloud_area_fraction":58.0,
        "cloud_area_fraction_high":47.7,"cloud_area_fraction_low":17.7,
        "cloud_area_fraction_medium":1.7,"dew_point_temperature":9.5,"relative_humidity":48.6,
        "wind_from_direction":151.8,"wind_speed":2.5,"wind_speed_of_gust":6.6}},
        "next_1_hours":{"summary":{"symbol_code":"partlycloudy_day"},"details":{
        "precipitation_amount":0.4,"probability_of_precipitation":12.0}},
        "next_6_hours":{"summary":{"symbol_code":"lightrain"},"details":{
        "precipitation_amount":3.0}}}},
        {"time":"2026-11-23T18:00:00Z","data":{"instant":{"details":{"air_temperature":11.0}},
        "next_6_hours":{"summary":{"symbol_code":"lightrainshowersandthunder_night"},
        "details":{"precipitation_amount":3.0}}}},
        {"time":"2026-11-24T00:00:00Z","data":{"instant":{"details":{"air_temperature":9.0}}}}]}}
        """

    @Test("Open-Meteo's numbers of the hour before stand with the hour that they are of")
    func readsOpenMeteo() throws {
        let forecast = try OpenMeteo.forecast(Array(Self.openMeteo.utf8), now: noon)
        #expect(forecast.steps.map(\.time) == [noon - 3600, noon, noon + 3600])
        let step = try #require(forecast.step(at: noon + 1800))
        #expect(step.temperature == 18.1)
        #expect(step.precipitation == 1.5)
        #expect(step.gust == 9)
        #expect(step.sky?.words == "light rain")
        #expect(step.lowCloud == 20)
        #expect(step.humidity == nil)
        #expect(forecast.steps[2].temperature == nil)
        #expect(forecast.step(at: noon + 7200) == nil)
    }

    @Test("MET Norway's steps are of an hour, then of six; the last moment is of none")
    func readsMetNorway() throws {
        let forecast = try MetNorway.forecast(Array(Self.metNorway.utf8), now: noon)
        #expect(forecast.steps.map(\.length) == [3600, 21_600])
        #expect(forecast.steps[0].precipitation == 0.4)
        #expect(forecast.steps[0].middleCloud == 1.7)
        #expect(forecast.steps[0].sky?.words == "partly cloudy")
        #expect(forecast.steps[1].sky?.words == "light rain showers and thunder")
    }

    @Test(
        "answers that are no forecast are refused",
        arguments: [
            "", "{}", "[]", "{\"hourly\":{}}", "{\"hourly\":{\"time\":[]}}",
            "{\"hourly\":{\"time\":[1e999]}}", "{\"hourly\":{\"time\":[9223372036854775807]}}",
            "{\"hourly\":{\"time\":[-9223372036854775808,0]}}",
            "{\"properties\":{\"timeseries\":[]}}",
            "{\"properties\":{\"timeseries\":[{\"time\":\"x\",\"data\":{\"instant\":{}}}]}}",
        ]
    )
    func refusesOthers(text: String) {
        #expect(throws: ProviderError.self) {
            try OpenMeteo.forecast(Array(text.utf8), now: noon)
        }
        #expect(throws: ProviderError.self) {
            try MetNorway.forecast(Array(text.utf8), now: noon)
        }
    }

    @Test("numbers that no weather has are none, and every document can still be made")
    func hostileNumbers() throws {
        let text = """
            {"hourly":{"time":[1795435200,1795435200,1795442400,1795438800],
            "temperature_2m":[1e300,-1e300,20,4],"wind_speed_10m":[-5,1e18,3,null],
            "precipitation":[-1,1e9,-0.0,0],"weather_code":[1e300,-1,2.5,95],
            "cloud_cover":[101,-1,50],"wind_direction_10m":[361,-1,360,0],
            "pressure_msl":[0,1e12,1013]}}
            """
        let forecast = try OpenMeteo.forecast(Array(text.utf8), now: noon)
        #expect(forecast.steps.map(\.time) == [noon, noon + 3600, noon + 7200])
        #expect(forecast.steps[0].temperature == nil)
        #expect(forecast.steps[0].wind == nil && forecast.steps[0].cloud == nil)
        #expect(forecast.steps[1].sky?.words == "thunderstorm")
        let report = Self.report(forecast)
        for document in WeatherDocument.allCases {
            #expect(!document.text(report).contains("inf") && !document.text(report).isEmpty)
        }
    }

    @Test(
        "symbols of MET Norway in words",
        arguments: [
            ("clearsky_day", "clear"), ("fair_polartwilight", "mainly clear"), ("rain", "rain"),
            ("heavysnowshowers_night", "heavy snow showers"), ("sleet", "sleet"),
            ("lightssleetshowersandthunder_day", "light sleet showers and thunder"),
            ("lightsnow", "light snow"), ("heavyrainandthunder", "heavy rain and thunder"),
        ]
    )
    func symbols(symbol: String, words: String) {
        #expect(Sky(symbol: symbol)?.words == words)
        #expect(Sky(symbol: symbol + "x")?.words != "")
    }

    @Test("unknown signs are no weather")
    func unknownSigns() {
        for symbol in ["", "_day", "light", "lights", "heavy", "rainx", "frogs_day"] {
            #expect(Sky(symbol: symbol) == nil, "\(symbol)")
        }
        #expect(Sky(code: 42) == nil)
    }

    @Test("places are found in the service's form; those that lie nowhere are left out")
    func places() throws {
        let text = """
            {"results":[{"id":2509954,"name":"Valencia","latitude":39.47391,"longitude":-0.37966,
            "elevation":16.0,"feature_code":"PPLA","country_code":"ES","timezone":"Europe/Madrid",
            "population":792086,"country":"España","admin1":"Valencia"},
            {"id":1,"name":"Nowhere","latitude":1e9,"longitude":0}],"generationtime_ms":0.5}
            """
        let found = try OpenMeteo.places(Array(text.utf8))
        #expect(found.map(\.title) == ["Valencia, España"])
        #expect(found[0].lies(in: " espana") && found[0].lies(in: "es"))
        #expect(!found[0].lies(in: "Venezuela"))
        #expect(try OpenMeteo.places(Array("{\"generationtime_ms\":0.4}".utf8)).isEmpty)
        #expect(
            OpenMeteo.searchPath("A&b=ñ #").hasPrefix("/v1/search?name=A%26b%3D%C3%B1%20%23&")
        )
    }

    static func report(
        _ forecast: Forecast,
        title: String = "Valencia, Spain",
        units: WeatherUnits = WeatherUnits(),
        isOld: Bool = false,
        now: Int64 = noon
    ) -> WeatherReport {
        WeatherReport(
            place: place(title),
            forecast: forecast,
            answer: WeatherAnswer(
                source: .openMeteo,
                fetched: noon - 5 * 3600,
                fresh: noon - 3600,
                body: ""
            ),
            isOld: isOld,
            units: units,
            now: now
        )
    }

    static func place(_ title: String) -> WeatherPlace {
        WeatherPlace(
            number: 1,
            name: "Valencia",
            title: title,
            latitude: 39.4739,
            longitude: -0.3797,
            timeZone: "Europe/Madrid",
            change: 1,
            modified: noon
        )
    }
}
