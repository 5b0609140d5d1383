/// Elements that are there for a while, each under a number of its own: callers that wait, or requests
/// under way.
struct Numbered<Element> {
    private var elements: [UInt64: Element] = [:]
    private var last: UInt64 = 0

    /// All that are there.
    var all: some Collection<Element> { elements.values }

    /// Adds an element; returns its number.
    mutating func add(_ element: Element) -> UInt64 {
        last += 1
        elements[last] = element
        return last
    }

    /// Removes an element.
    mutating func remove(_ number: UInt64) { elements[number] = nil }
}
