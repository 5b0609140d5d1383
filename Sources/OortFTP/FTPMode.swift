/// Modes at a server that has such: FTP gives a new file or folder one by itself, and another one by a
/// command afterwards only.
enum FTPMode {
    /// The mode that something new is to get, 0777; nil where the one that it has will do.
    ///
    /// What the server gave by itself, 0777 or nil where it does not say, shows what it takes away from
    /// others: they get nothing more than that, but the right to run what they may read.
    static func change(to wanted: UInt16, from given: Int?) -> Int? {
        guard let given else { return isClosed(Int(wanted)) ? new(wanted) : nil }
        let widest = given | (given & 0o444) >> 2 | 0o700
        let mode = Int(wanted) & widest
        return mode == given ? nil : mode
    }

    /// The mode of something new whose mode is set before it is looked at: nobody but the owner writes.
    static func new(_ wanted: UInt16) -> Int { Int(wanted) & ~0o022 }

    /// Whether not everybody may read it.
    static func isClosed(_ mode: Int) -> Bool { mode & 0o044 != 0o044 }
}
