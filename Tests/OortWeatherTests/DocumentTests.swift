import Foundation
import FoundationXML
import OortModel
import Testing

@testable import OortWeather

@Suite("What a place's files say")
struct DocumentTests {
    private let forecast: Forecast

    init() throws {
        forecast = try OpenMeteo.forecast(Array(ForecastTests.openMeteo.utf8), now: noon)
    }

    @Test("now.txt tells the hour by the clocks of the place, in the units of the settings")
    func now() {
        let text = ForecastTests.report(forecast).now
        #expect(text.hasPrefix("Valencia, Spain\n===============\n\nMonday, 2026-11-23 13:00"))
        #expect(text.contains("Temperature  18.1 °C"))
        #expect(text.contains("14.4 km/h"))
        #expect(text.contains("1.5 mm this hour"))
        #expect(text.contains("Open-Meteo, fetched 2026-11-23 08:00\n"))
        #expect(!text.contains("ago"))
        var units = WeatherUnits()
        (units.temperature, units.wind, units.rain) = (.fahrenheit, .knots, .inches)
        let other = ForecastTests.report(forecast, units: units).now
        #expect(other.contains("64.6 °F") && other.contains("7.8 knots"))
        #expect(other.contains("0.06 in this hour"))
    }

    @Test("an old forecast says its age in every file")
    func age() throws {
        let report = ForecastTests.report(forecast, isOld: true)
        #expect(report.now.contains("5 hours ago: the service cannot be reached now"))
        #expect(report.json.contains("\"age_minutes\" : 300"))
        #expect(report.json.contains("\"is_old\" : true"))
        #expect(WeatherChart(report).svg.contains("5 hours ago"))
        for table in [report.hourly, report.daily] {
            let lines = table.split(separator: "\n")
            #expect(lines[0].hasSuffix(",fetched"))
            #expect(lines[1].hasSuffix(",2026-11-23T08:00:00+01:00"))
        }
    }

    @Test("tables have as many cells in each row as in the head")
    func tables() {
        let report = ForecastTests.report(forecast)
        for table in [report.hourly, report.daily] {
            let counts = Set(
                table.split(separator: "\n").map {
                    $0.split(separator: ",", omittingEmptySubsequences: false).count
                }
            )
            #expect(counts.count == 1)
        }
        #expect(report.hourly.split(separator: "\n").count == 3, "the hour before is over")
    }

    @Test("the chart is XML whatever a place is called, also without any numbers")
    func chart() throws {
        let empty = try OpenMeteo.forecast(
            Array("{\"hourly\":{\"time\":[\(noon)]}}".utf8),
            now: noon
        )
        for (forecast, title) in [
            (forecast, "A <b> & \"c\" \u{1}\u{FFFE}é"), (empty, "x"), (forecast, ""),
        ] {
            let svg = WeatherChart(ForecastTests.report(forecast, title: title)).svg
            let parser = XMLParser(data: Data(svg.utf8))
            #expect(parser.parse(), "\(title)")
            #expect(!svg.contains("nan"))
        }
    }

    @Test("a forecast that ended is told so")
    func ended() {
        let report = ForecastTests.report(forecast, now: noon + 86_400 * 2)
        #expect(report.now.contains("The forecast ended before now."))
        #expect(XMLParser(data: Data(WeatherChart(report).svg.utf8)).parse())
    }
}

@Suite("Sun and moon")
struct SunAndMoonTests {
    /// Seconds since 1970 of a time in UTC.
    private func time(_ text: String) throws -> Int64 {
        try #require(Timestamp(rfc3339: text)?.seconds)
    }

    @Test("the sun over Berlin on the longest day, within two minutes")
    func sun() throws {
        let sky = SunAndMoon(latitude: 52.52, longitude: 13.405)
        let (rise, set) = sky.crossings(
            of: .sun,
            height: SunAndMoon.horizon(.sun),
            from: try time("2024-06-20T22:00:00Z"),
            to: try time("2024-06-21T22:00:00Z")
        )
        // 04:43 and 21:33 by the clocks there.
        #expect(abs(try #require(rise) - time("2024-06-21T02:43:00Z")) <= 120)
        #expect(abs(try #require(set) - time("2024-06-21T19:33:00Z")) <= 120)
    }

    @Test("the sun neither rises nor sets over Tromsø in December")
    func polarNight() throws {
        let sky = SunAndMoon(latitude: 69.65, longitude: 18.96)
        let found = sky.crossings(
            of: .sun,
            height: SunAndMoon.horizon(.sun),
            from: try time("2024-12-20T23:00:00Z"),
            to: try time("2024-12-21T23:00:00Z")
        )
        #expect(found.rise == nil && found.set == nil)
    }

    @Test("new and full moons, within half an hour")
    func moons() throws {
        // The eclipses of 2024: 8 April, 18:21 UTC, and 18 September, 02:34 UTC.
        let new = try #require(SunAndMoon.next(phase: 0, after: time("2024-03-20T00:00:00Z")))
        #expect(abs(new - (try time("2024-04-08T18:21:00Z"))) < 1800)
        let full = try #require(SunAndMoon.next(phase: 180, after: time("2024-09-01T00:00:00Z")))
        #expect(abs(full - (try time("2024-09-18T02:34:00Z"))) < 1800)
        #expect(SunAndMoon.lit(at: Double(full)) > 99.5 && SunAndMoon.lit(at: Double(new)) < 0.5)
        #expect(SunAndMoon.name(ofPhase: 359) == "new moon")
        #expect(SunAndMoon.name(ofPhase: 180) == "full moon")
    }

    @Test("a fortnight at any place, the poles too", arguments: [-90.0, -33.9, 0, 51.5, 90])
    func fortnight(latitude: Double) {
        var place = ForecastTests.place("Somewhere")
        place.latitude = latitude
        place.timeZone = "No/Such"
        let text = SunAndMoonText(place: place, now: noon).text
        #expect(text.split(separator: "\n").count > 20)
        #expect(text.contains("Mon 23 Nov") && text.contains("Sun 6 Dec"))
    }

    @Test("dates by the clocks of a place, before 1970 and over a change of the clocks")
    func dates() throws {
        let zone = try #require(TimeZone(identifier: "Europe/Madrid"))
        #expect(LocalTime(0, in: .gmt).date == "1970-01-01")
        #expect(LocalTime(-1, in: .gmt).clock == "23:59")
        #expect(LocalTime(-1, in: .gmt).short == "Wed 31 Dec")
        #expect(LocalTime(951_782_400, in: .gmt).date == "2000-02-29")
        let change = try time("2026-10-25T01:00:00Z")
        #expect(LocalTime(change - 1, in: zone).clock == "02:59")
        #expect(LocalTime(change, in: zone).clock == "02:00")
    }
}
