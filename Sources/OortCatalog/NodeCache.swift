import OortModel
import Synchronization

/// The nodes that were asked for lately, bounded, so that hot lookups need no SQL.
///
/// Two halves: a node that is asked for moves to the young half; when that is full, it becomes the old half
/// and the former old one is dropped. A reader that began before a transaction ended must not put back what
/// it read: `fill` takes the generation that the reader saw before it read.
final class NodeCache: Sendable {
    /// A node by reference: a table has more places than nodes, and each is as large as what it holds.
    private final class Box: Sendable {
        let node: Node

        init(_ node: Node) { self.node = node }
    }

    private struct State {
        var young: [Inode: Box] = [:]
        var old: [Inode: Box] = [:]
        var generation: UInt64 = 0
    }

    private let state = Mutex(State())
    private let halfCapacity: Int

    /// A cache of at most `capacity` nodes.
    init(capacity: Int) { halfCapacity = max(capacity / 2, 1) }

    /// The node, if it is here, and the generation to hand to `fill` if it is not.
    func node(_ inode: Inode) -> (node: Node?, generation: UInt64) {
        state.withLock { state in
            if let box = state.young[inode] { return (box.node, state.generation) }
            guard let box = state.old.removeValue(forKey: inode) else {
                return (nil, state.generation)
            }
            insert(box, &state)
            return (box.node, state.generation)
        }
    }

    /// The generation to hand to `fill` after a read that begins now.
    var generation: UInt64 { state.withLock { $0.generation } }

    /// Stores nodes that were read, unless a transaction ended since `generation`.
    func fill(_ nodes: [Node], generation: UInt64) {
        state.withLock { state in
            guard state.generation == generation else { return }
            for node in nodes { insert(Box(node), &state) }
        }
    }

    /// Forgets what a transaction touched (everything for nil), and stores the nodes whose state `now` is
    /// known.
    ///
    /// To be called in the order of the transactions.
    func transactionEnded(touching inodes: Set<Inode>?, now nodes: [Node]) {
        state.withLock { state in
            state.generation &+= 1
            defer { for node in nodes { insert(Box(node), &state) } }
            guard let inodes else {
                state.young = [:]
                state.old = [:]
                return
            }
            for inode in inodes {
                state.young[inode] = nil
                state.old[inode] = nil
            }
        }
    }

    private func insert(_ box: Box, _ state: inout State) {
        if state.young.count >= halfCapacity {
            state.old = state.young
            state.young = [:]
        }
        state.young[box.node.inode] = box
    }
}
