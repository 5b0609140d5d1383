import OortModel

/// Orders operations by what must come first.
///
/// A circle always has a name in it that one operation frees for another; it is broken by a temporary name.
struct OperationOrder {
    private struct Node {
        var inode: Inode
        var action: RemoteOperation.Action
        var position: Int
        var after: [Int] = []
        /// The operation that frees the name which this one takes.
        var nameFreedBy: Int?
    }

    private var nodes: [Node] = []

    /// Adds an operation of the item at `position`; gives its number.
    mutating func add(_ inode: Inode, _ action: RemoteOperation.Action, at position: Int) -> Int {
        nodes.append(Node(inode: inode, action: action, position: position))
        return nodes.count - 1
    }

    mutating func require(_ first: Int, before second: Int, forName: Bool = false) {
        guard first != second else { return }
        if forName {
            nodes[second].nameFreedBy = first
        } else if !nodes[second].after.contains(first) {
            nodes[second].after.append(first)
        }
    }

    /// The operations in an order in which they can be done one by one.
    ///
    /// `detour` gives the temporary place of the item at a position, in a folder; `exclusions` gives
    /// the moves that must not be under way at the same time as an operation of that item.
    func operations(
        detour: (Int, Inode) -> Place,
        exclusions: (Int) -> [Int]
    ) -> [RemoteOperation] {
        var nodes = nodes
        var order: [Int] = []
        order.reserveCapacity(nodes.count)
        var rank = [Int?](repeating: nil, count: nodes.count)
        var waiting = Array(nodes.indices)
        while !waiting.isEmpty {
            var left: [Int] = []
            for node in waiting {
                let isReady =
                    nodes[node].after.allSatisfy { rank[$0] != nil }
                    && (nodes[node].nameFreedBy.map { rank[$0] != nil } ?? true)
                if isReady {
                    rank[node] = order.count
                    order.append(node)
                } else {
                    left.append(node)
                }
            }
            if left.count == waiting.count {
                guard Self.breakCircle(&nodes, rank, from: left[0], detour) else { break }
            }
            waiting = left
        }
        return assemble(nodes, order, rank, exclusions)
    }

    /// Sends one operation of a circle to a temporary name; the next plan gives it its own.
    private static func breakCircle(
        _ nodes: inout [Node],
        _ rank: [Int?],
        from start: Int,
        _ detour: (Int, Inode) -> Place
    ) -> Bool {
        var path: [Int] = []
        var node = start
        while !path.contains(node) {
            path.append(node)
            let first =
                nodes[node].after.first { rank[$0] == nil }
                ?? nodes[node].nameFreedBy.flatMap { rank[$0] == nil ? $0 : nil }
            guard let first else { return false }
            node = first
        }
        let circle = path[(path.firstIndex(of: node) ?? 0)...]
        for member in circle {
            guard let freer = nodes[member].nameFreedBy, circle.contains(freer),
                nodes[member].after.allSatisfy({ rank[$0] != nil || !circle.contains($0) })
            else { continue }
            let position = nodes[member].position
            switch nodes[member].action {
            case .move(let place, _):
                nodes[member].action = .move(to: detour(position, place.parent), isDetour: true)
            case .createFolder(let place):
                nodes[member].action = .createFolder(at: detour(position, place.parent))
            case .upload(let place, let content):
                nodes[member].action = .upload(at: detour(position, place.parent), content)
            case .replace, .delete, .setAttributes, .duplicate: continue
            }
            nodes[member].nameFreedBy = nil
            return true
        }
        return false
    }

    private func assemble(
        _ nodes: [Node],
        _ order: [Int],
        _ rank: [Int?],
        _ exclusions: (Int) -> [Int]
    ) -> [RemoteOperation] {
        var operations: [RemoteOperation] = []
        operations.reserveCapacity(order.count)
        for node in order {
            var after = nodes[node].after.compactMap { rank[$0] }
            if let freer = nodes[node].nameFreedBy, let freed = rank[freer] { after.append(freed) }
            operations.append(
                RemoteOperation(inode: nodes[node].inode, action: nodes[node].action, after: after)
            )
        }
        for (place, node) in order.enumerated() {
            for other in exclusions(nodes[node].position) {
                guard let otherPlace = rank[other], otherPlace != place else { continue }
                let (first, second) = (min(place, otherPlace), max(place, otherPlace))
                if !operations[second].after.contains(first) {
                    operations[second].after.append(first)
                }
            }
        }
        return operations
    }
}
