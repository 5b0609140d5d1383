/// The preferred form of each kind of native document.
public struct ExportPreference: Hashable, Sendable {
    /// The preferred file name extension, by the extension of the provider's own first choice, which
    /// identifies the kind of document: `["docx": "odt"]`.
    public var extensions: [String: String]

    /// The provider's own choices, except for these kinds.
    public init(_ extensions: [String: String] = [:]) { self.extensions = extensions }

    /// The forms of a document, the preferred one first where the document has it.
    public func ordered(_ formats: [ExportFormat]) -> [ExportFormat] {
        guard let first = formats.first, let wish = extensions[first.fileExtension],
            let index = formats.firstIndex(where: { $0.fileExtension == wish })
        else { return formats }
        var formats = formats
        formats.insert(formats.remove(at: index), at: 0)
        return formats
    }
}
