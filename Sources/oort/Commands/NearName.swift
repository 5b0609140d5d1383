/// What a person may have meant by a word that is none of those known.
enum NearName {
    /// The known name that is nearest to a word, if one is near enough to be meant.
    static func of(_ word: String, among names: [String]) -> String? {
        let word = word.lowercased()
        let most = word.count < 5 ? 1 : 2
        let near = names.map { (name: $0, distance: distance(word, $0.lowercased())) }
            .filter { $0.distance <= most }
        guard let least = near.map(\.distance).min() else { return nil }
        let nearest = near.filter { $0.distance == least }.map(\.name)
        // The first letter is seldom wrong: "umount" means "unmount", and not "mount".
        return nearest.first { $0.lowercased().first == word.first } ?? nearest.first
    }

    /// How many letters are to be added, left out, replaced, or exchanged with the next one.
    private static func distance(_ one: String, _ other: String) -> Int {
        let (one, other) = (Array(one), Array(other))
        var older: [Int] = []
        var last = Array(0...other.count)
        for row in one.indices {
            var next = [row + 1]
            for column in other.indices {
                let isSame = one[row] == other[column]
                var least = min(
                    next[column] + 1,
                    last[column + 1] + 1,
                    last[column] + (isSame ? 0 : 1)
                )
                if row > 0, column > 0, one[row] == other[column - 1],
                    one[row - 1] == other[column]
                {
                    least = min(least, older[column - 1] + 1)
                }
                next.append(least)
            }
            (older, last) = (last, next)
        }
        return last.last ?? 0
    }
}
