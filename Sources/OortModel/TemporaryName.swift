/// The name of a file that Oort makes beside an upload's place, on a server of a person's own, until it is
/// renamed: `.oort-SECONDS-NUMBER.part`, both in hexadecimal digits.
public enum TemporaryName {
    /// For how many seconds such a file is kept, so that its upload can go on.
    private static let length: Int64 = 7 * 86_400

    /// A new name for a file that is made at a second since 1970.
    public static func make(at second: Int64) -> String {
        let number = SystemNumbers().next()
        return ".oort-\(String(max(0, second), radix: 16))-\(String(number, radix: 16)).part"
    }

    /// Whether a name is that of such a file, or of one of an earlier version, which has no seconds.
    public static func isOne(_ name: String) -> Bool {
        name.begins(with: ".oort-") && name.ends(with: ".part")
    }

    /// Whether such a file's upload was given up: its name and the time that the server reports of it are
    /// both a week old.
    ///
    /// The server's time alone may be the one that the file is to have after its rename; the name's alone
    /// may be that of a long upload that goes on. `modified` and `now` are seconds since 1970; if the
    /// server reports no time, the name decides.
    public static func isLeft(_ name: String, modified: Int64?, now: Int64) -> Bool {
        guard isOne(name) else { return false }
        let head = name.dropping(beginning: ".oort-")?.cut(atFirst: "-")?.before
        let made = head.flatMap { Int64($0, radix: 16) }
        let times = [made, modified].compactMap(\.self)
        return !times.isEmpty
            && times.allSatisfy { then in
                let (age, overflows) = now.subtractingReportingOverflow(then)
                return !overflows && age > length
            }
    }
}
