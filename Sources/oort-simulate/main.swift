import Foundation
import OortSimulators

// Runs the simulated services until it is ended by a signal, for tests in other languages:
// oort-simulate --port-file FILE [--empty] [--of-bob] [SERVICE ...]
// FILE then holds {"SERVICE": {"port", "hosts", "access_token", "refresh_token"}}.

var file: String?
var isSample = true
var person = SimulatedPerson.ada
var names: [String] = []
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
    switch argument {
    case "--port-file": file = arguments.popFirst()
    case "--empty": isSample = false
    case "--of-bob": person = .bob
    default: names.append(argument)
    }
}
guard let file else {
    FileHandle.standardError.write(
        Data("usage: oort-simulate --port-file FILE [--empty] [--of-bob] [SERVICE ...]\n".utf8)
    )
    exit(2)
}

let running = try await Simulators.start(
    names.isEmpty ? nil : names,
    isSample: isSample,
    person: person
)
var services: [String: JSON] = [:]
for service in running {
    services[service.name] = [
        "port": .integer(Int64(service.simulator.port)),
        "hosts": .array(service.simulator.service.hosts.map { .string($0) }),
        "access_token": .string(service.tokens.access),
        "refresh_token": JSON(service.tokens.refresh),
    ]
}
try Data(JSON.object(services).bytes).write(to: URL(filePath: file), options: .atomic)
while true { try await Task.sleep(for: .seconds(3600)) }
