import OortModel
import OortSimulators
import OortTesting
import Testing

/// What every provider promises, whichever service it speaks to; picked by its traits.
@Suite("provider conformance")
struct ProviderConformance {
    @Test("the identity has a root and a name", arguments: conformingServices)
    func identity(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            let identity = try await world.provider.identity()
            #expect(!identity.id.isEmpty)
            #expect(identity.displayName == "Ada Example")
        }
    }
}
