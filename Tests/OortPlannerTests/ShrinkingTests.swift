import OortPlanner
import Testing

/// Histories must find a broken planner out, and say by what in few steps.
@Suite("failing histories shrink")
struct ShrinkingTests {
    /// A planner with one of its rules broken, and how many steps show it.
    struct Broken: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var mostSteps: Int
        var planning: Planning

        /// Changes the local steps of each plan.
        init(
            _ rule: String,
            mostSteps: Int,
            _ change: @escaping @Sendable (inout [LocalStep]) -> Void
        ) {
            testDescription = rule
            self.mostSteps = mostSteps
            planning = { planner, items in
                var plan = planner.plan(items)
                change(&plan.local)
                return plan
            }
        }

        /// Keeps something from each plan.
        init(
            _ rule: String,
            mostSteps: Int,
            hiding change: @escaping @Sendable (inout [ItemState]) -> Void
        ) {
            testDescription = rule
            self.mostSteps = mostSteps
            planning = { planner, items in
                var items = items
                change(&items)
                return planner.plan(items)
            }
        }
    }

    static let broken: [Broken] = [
        Broken(
            "what may be gone shares its name with what came",
            mostSteps: 6,
            hiding: { items in
                for index in items.indices { items[index].mayBeGone = false }
            }
        ),
        Broken(
            "what a copy is made of goes before the copy is sent",
            mostSteps: 7,
            hiding: { items in
                for index in items.indices { items[index].borrowed = nil }
            }
        ),
        Broken("what somebody else wrote is overwritten", mostSteps: 6) { steps in
            steps.removeAll { if case .keepBoth = $0 { true } else { false } }
        },
        Broken("what was changed here is forgotten with what went there", mostSteps: 6) { steps in
            steps = steps.map { if case .detach(let inode) = $0 { .forget(inode) } else { $0 } }
        },
    ]

    @Test("a broken rule is found, and shown by few steps", arguments: broken)
    func rules(_ broken: Broken) throws {
        let fails = { (history: History) in history.failure(planning: broken.planning) != nil }
        let found = (0..<100_000 as Range<UInt64>).lazy.map(History.random).first(where: fails)
        let history = try #require(found).shrunk(while: fails)
        #expect(fails(history))
        #expect(history.steps.count <= broken.mostSteps)
        for position in history.steps.indices {
            var shorter = history
            shorter.steps.remove(at: position)
            #expect(!fails(shorter), "step \(position) is not needed")
        }
    }

    @Test("a shrunk history is printed as a test that can be kept")
    func printed() {
        let history = History(
            service: .path,
            steps: [.init(.localCreate, 0, 2), .init(.goOn), .init(.remoteWrite, 1, 0, 3)]
        )
        let text = """
                @Test("what this history taught")
                func seed7() {
                    let history = History(
                        service: .path,
                        steps: [
                            .init(.localCreate, 0, 2), .init(.goOn), .init(.remoteWrite, 1, 0, 3),
                        ]
                    )
                    #expect(history.failure() == nil)
                }
            """
        #expect(history.test(named: "seed7") == text)
    }
}
