// Module SwiftFUSE.
