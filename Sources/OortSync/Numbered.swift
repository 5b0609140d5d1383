/// Who is there for a while, each under a number of its own: those who wait, or what is under way.
struct Numbered<Element> {
    private var elements: [UInt64: Element] = [:]
    private var last: UInt64 = 0

    /// All that are there.
    var all: some Collection<Element> { elements.values }

    /// One more; its number.
    mutating func add(_ element: Element) -> UInt64 {
        last += 1
        elements[last] = element
        return last
    }

    /// One that is there no longer.
    mutating func remove(_ number: UInt64) { elements[number] = nil }
}
