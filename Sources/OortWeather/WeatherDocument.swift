import OortModel

/// The files of a place.
enum WeatherDocument: String, CaseIterable, Sendable {
    case now
    case hourly
    case daily
    case forecast
    case sunAndMoon = "sun-and-moon"
    case chart

    /// The form in which it is read.
    var format: ExportFormat {
        switch self {
        case .now, .sunAndMoon: ExportFormat(mimeType: "text/plain", fileExtension: "txt")
        case .hourly, .daily: ExportFormat(mimeType: "text/csv", fileExtension: "csv")
        case .forecast: ExportFormat(mimeType: "application/json", fileExtension: "json")
        case .chart: ExportFormat(mimeType: "image/svg+xml", fileExtension: "svg")
        }
    }

    /// The document's id at a place.
    func id(in place: Int) -> ItemID { ItemID("\(place)/\(rawValue)") }

    /// A document's place and what it is; nil for the ids of other items.
    static func parse(_ id: ItemID) -> (place: Int, document: WeatherDocument)? {
        guard let (place, name) = id.rawValue.cut(atFirst: "/"), let number = Int(place),
            let document = WeatherDocument(rawValue: String(name))
        else { return nil }
        return (number, document)
    }

    /// The document as an item: its size is known once it is made.
    func item(in place: WeatherPlace) -> Item {
        var item = Item(
            id: id(in: place.number),
            kind: .nativeDocument,
            fileName: rawValue,
            parentID: ItemID("\(place.number)")
        )
        item.clientModifiedTime = Timestamp(seconds: place.modified)
        item.mimeType = format.mimeType
        // It goes with its place.
        item.permissions = [.read, .delete]
        item.isOwn = true
        item.exports = [format]
        return item
    }

    /// What the document says.
    func text(_ report: WeatherReport) -> String {
        switch self {
        case .now: report.now
        case .hourly: report.hourly
        case .daily: report.daily
        case .forecast: report.json
        case .chart: WeatherChart(report).svg
        case .sunAndMoon: SunAndMoonText(place: report.place, now: report.time).text
        }
    }
}
