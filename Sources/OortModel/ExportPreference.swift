/// In which form native documents are wished, for each kind of document.
public struct ExportPreference: Hashable, Sendable {
    /// The wished file name extension by that of the provider's own first choice, which tells what
    /// kind of document it is: `["docx": "odt"]`.
    public var extensions: [String: String]

    /// The provider's own choices, but for these kinds.
    public init(_ extensions: [String: String] = [:]) { self.extensions = extensions }

    /// The forms of a document, the wished one first where the document has it.
    public func ordered(_ formats: [ExportFormat]) -> [ExportFormat] {
        guard let first = formats.first, let wish = extensions[first.fileExtension],
            let index = formats.firstIndex(where: { $0.fileExtension == wish })
        else { return formats }
        var formats = formats
        formats.insert(formats.remove(at: index), at: 0)
        return formats
    }
}
