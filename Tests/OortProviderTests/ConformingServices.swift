import OortTesting

/// The services that the conformance suite runs: one line each.
let conformingServices: [ConformingService] = []
