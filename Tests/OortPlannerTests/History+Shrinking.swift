/// From a long history that fails to a short one that a person can read, and to its test.
extension History {
    /// The history without every step, and with the smallest numbers, that the failure does not
    /// need.
    ///
    /// Halves are taken out first, then quarters, then single steps; then numbers become 0 or are
    /// halved; all of it again until nothing more can go. What comes out fails, and no longer does
    /// when any one step is taken out.
    func shrunk(while fails: (History) -> Bool) -> History {
        var best = self
        while true {
            let shorter = best.withFewerSteps(while: fails).withSmallerNumbers(while: fails)
            if shorter == best { return best }
            best = shorter
        }
    }

    private func withFewerSteps(while fails: (History) -> Bool) -> History {
        var best = self
        var size = max(1, best.steps.count / 2)
        while size >= 1 {
            var start = 0
            while start < best.steps.count {
                var candidate = best
                candidate.steps.removeSubrange(start..<min(start + size, best.steps.count))
                if fails(candidate) { best = candidate } else { start += size }
            }
            size /= 2
        }
        return best
    }

    private func withSmallerNumbers(while fails: (History) -> Bool) -> History {
        let numbers: [WritableKeyPath<HistoryStep, Int>] = [\.one, \.two, \.three]
        var best = self
        for position in best.steps.indices {
            for number in numbers {
                var divisor = 64
                while divisor > 1, best.steps[position][keyPath: number] > 0 {
                    var candidate = best
                    candidate.steps[position][keyPath: number] /= divisor
                    if fails(candidate) { best = candidate } else { divisor /= 2 }
                }
            }
        }
        return best
    }

    /// The history as a test to be put into `FoundHistoriesTests`, where it needs a name of what it
    /// taught.
    func test(named name: String) -> String {
        var lines = [""]
        for step in steps {
            let text = "\(step),"
            if lines[lines.count - 1].count + text.count > 70 { lines.append("") }
            lines[lines.count - 1] += lines[lines.count - 1].isEmpty ? text : " " + text
        }
        let margin = String(repeating: " ", count: 20)
        let steps = lines.joined(separator: "\n" + margin)
        return """
                @Test("what this history taught")
                func \(name)() {
                    let history = History(
                        service: .\(service),
                        steps: [
                            \(steps)
                        ]
                    )
                    #expect(history.failure() == nil)
                }
            """
    }
}
