import CCurl

/// The memory of a process that holds tokens.
public enum PrivateMemory {
    /// Keeps other programs of the user from reading this process's memory, and the system from
    /// writing it to a file when the process dies (`man 2 prctl`, PR_SET_DUMPABLE).
    public static func begin() { _ = oort_set_dumpable(0) }

    /// Whether `begin` was called.
    public static var isOn: Bool { oort_is_dumpable() == 0 }
}
