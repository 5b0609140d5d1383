/// The name of a file that Oort makes beside an upload's place on a server of a person's own, until it is
/// renamed: `.oort-SECONDS-NUMBER.part`, both in hexadecimal digits.
public enum TemporaryName {
    /// Seconds for which such a file is left for an upload to go on with it.
    private static let length: Int64 = 7 * 86_400

    /// A new name, of a file that is made at a second since 1970.
    public static func make(at second: Int64) -> String {
        let number = UInt64.random(in: .min ... .max)
        return ".oort-\(String(max(0, second), radix: 16))-\(String(number, radix: 16)).part"
    }

    /// Whether a name is that of such a file, or of one of an earlier version, without the seconds.
    public static func isOne(_ name: String) -> Bool {
        name.begins(with: ".oort-") && name.ends(with: ".part")
    }

    /// Whether nobody goes on with a file of this name any more: its name and the time that the server tells
    /// of it are both a week old.
    ///
    /// The server's time alone may be the one that the file is to have when it is renamed, and the name's
    /// alone that of a long upload which goes on. `modified` and `now` are seconds since 1970; of a
    /// server that tells no time the name decides.
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
