/// What the services' searches find: whole words, whatever their case.
///
/// Their indexes are late, which is why an item in the trash may still be found.
extension SimulatedItem {
    /// Bytes of the largest content that is looked into.
    private static let largestSearched: Int64 = 1 << 20

    /// Whether all words are in the name, the description or the content.
    func isFound(by words: [String]) -> Bool {
        guard !words.isEmpty else { return false }
        let known = Set(Self.words(of: searchText))
        return words.allSatisfy { word in
            known.contains(word) || name.lowercased().contains(word)
        }
    }

    /// Name, description and, where it is no large one, content.
    var searchText: String {
        var text = [name, description ?? ""].joined(separator: " ")
        if let content = head?.content, content.size < Self.largestSearched {
            text += " " + String(decoding: content.bytes, as: UTF8.self)
        }
        return text
    }

    /// The words of a text in lower case.
    static func words(of text: String) -> [String] {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
    }
}
