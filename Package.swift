// swift-tools-version: 6.2
import PackageDescription

/// The services that Oort speaks to.
///
/// Adding one: a folder `Sources/Oort<Service>`, its name here, and one registration line in
/// `Sources/oort/Services.swift`.
let services = ["Box", "Dropbox", "GoogleDrive", "OneDrive"]

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

let argumentParser = Target.Dependency.product(
    name: "ArgumentParser",
    package: "swift-argument-parser"
)
let collections = Target.Dependency.product(name: "Collections", package: "swift-collections")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let flyingFox = Target.Dependency.product(name: "FlyingFox", package: "FlyingFox")
let flyingSocks = Target.Dependency.product(name: "FlyingSocks", package: "FlyingFox")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let sqlite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let lifecycle = Target.Dependency.product(
    name: "ServiceLifecycle",
    package: "swift-service-lifecycle"
)
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let system = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let toml = Target.Dependency.product(name: "TOMLKit", package: "TOMLKit")

func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

let package = Package(
    name: "oort",
    products: [
        .executable(name: "oort", targets: ["oort"]),
        .library(name: "SwiftFUSE", targets: ["SwiftFUSE"]),
    ],
    // Exact, so that a release can be built again.
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", exact: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-system", exact: "1.8.1"),
        .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
        .package(url: "https://github.com/LebJe/TOMLKit", exact: "0.6.0"),
        .package(url: "https://github.com/swhitty/FlyingFox", exact: "0.27.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
    ],
    targets: [
        // C libraries.
        .systemLibrary(
            name: "CFUSE",
            pkgConfig: "fuse3",
            providers: [.apt(["libfuse3-dev"])]
        ),
        .systemLibrary(
            name: "CCurl",
            pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]
        ),

        .systemLibrary(name: "CLinux"),
        .target(name: "CFUSEGuard"),
        .target(name: "CSwiftJobs"),

        // Programs that this one starts.
        module("OortProcesses", ["CLinux", system]),

        // The left column: from the kernel down to the catalog.
        module("SwiftFUSE", ["CFUSE", "CFUSEGuard", logging]),
        module("OortModel"),
        module("OortPlanner", ["OortModel", collections]),
        module("OortCatalog", ["OortModel", "OortPlanner", grdb, sqlite, logging]),
        module("OortContentStore", ["OortModel", "OortCatalog", logging, system]),
        module(
            "OortSync",
            ["OortModel", "OortPlanner", "OortCatalog", "OortContentStore", collections, logging]
        ),
        module(
            "OortFileSystem",
            ["OortModel", "OortCatalog", "OortContentStore", logging]
        ),
        module(
            "OortFUSE",
            [
                "SwiftFUSE", "OortFileSystem", "OortContentStore", "OortCatalog", "OortModel",
                logging,
            ]
        ),

        // The right column: from the services down to HTTP.
        module("SwiftSFTP", [collections, system]),
        module("OortPlaces", ["OortModel", grdb, logging]),
        module(
            "OortSFTP",
            ["SwiftSFTP", "OortModel", "OortProcesses", "OortTransport", crypto, system]
        ),
        module("OortTransport", ["CCurl", "OortModel", collections, crypto, logging]),
        module("OortFTP", ["CCurl", "OortModel", "OortTransport", crypto]),
        module(
            "OortSignIn",
            ["OortModel", "OortProcesses", "OortTransport", crypto, flyingFox, logging, system]
        ),
    ]
        + [module("OortWebDAV", ["OortModel", "OortTransport", crypto, logging])]
        + services.map {
            module("Oort\($0)", ["OortModel", "OortTransport", "OortSignIn", crypto, logging])
        }
        + [
            // Services whose sign-in is no OAuth.
            module(
                "OortS3",
                ["OortModel", "OortProcesses", "OortTransport", "OortSignIn", crypto, logging]
            ),
            // The weather, which is no store of files.
            module("OortWeather", ["OortModel", "OortTransport", crypto, logging, system]),

            // Beside the house.
            .target(
                name: "OortSimulators",
                dependencies: ["OortModel", crypto, flyingFox, logging],
                // Optimised in tests too: a quarter of their time went into it, most into writing JSON.
                swiftSettings: strict + [.unsafeFlags(["-O"], .when(configuration: .debug))]
            ),
            module("MountTesting", ["OortProcesses", system]),
            module(
                "OortTesting",
                [
                    "CSwiftJobs", "OortModel", "OortTransport", "OortSimulators", collections,
                    logging,
                ]
            ),
            // Servers that nobody here wrote, which several targets' tests start.
            module(
                "ServerTesting",
                [
                    "MountTesting", "OortModel", "OortProcesses", "OortTransport", "OortWebDAV",
                    "OortSFTP", "OortFTP", "OortS3", "OortSignIn", logging, system,
                ]
            ),

            // The simulated services for tests in other languages.
            .executableTarget(
                name: "oort-simulate",
                dependencies: ["OortSimulators"],
                swiftSettings: strict
            ),

            // Where the two columns meet.
            .executableTarget(
                name: "oort",
                dependencies: [
                    "OortModel", "OortCatalog", "OortContentStore", "OortSync", "OortFileSystem",
                    "CLinux", "OortFUSE", "SwiftFUSE", "OortTransport", "OortSignIn",
                    "OortSimulators",
                    "OortPlaces", "OortProcesses", "OortSFTP", "OortFTP", "OortS3", "OortWebDAV",
                    "OortWeather",
                    argumentParser, crypto, flyingFox, flyingSocks, lifecycle, logging, system,
                    toml,
                ] + services.map { .init(stringLiteral: "Oort\($0)") },
                swiftSettings: strict
            ),

            tests("OortProcessesTests", ["OortProcesses", system]),
            tests("SwiftFUSETests", ["SwiftFUSE", "MountTesting"]),
            tests(
                "OortCommandTests",
                [
                    "oort", "OortCatalog", "OortFileSystem", "OortModel", "OortWeather",
                    "OortSignIn",
                    "OortSimulators", "OortTransport", argumentParser,
                    logging, lifecycle,
                ]
            ),
            tests(
                "OortS3Tests",
                [
                    "OortS3", "OortPlaces", "OortModel", "OortProcesses", "OortSignIn",
                    "OortTransport", "ServerTesting", flyingFox, flyingSocks, logging,
                ]
            ),
            tests("SwiftSFTPTests", ["SwiftSFTP", "MountTesting", "OortProcesses", system]),
            tests(
                "OortSFTPTests",
                [
                    "OortSFTP", "SwiftSFTP", "OortPlaces", "OortModel", "OortProcesses",
                    "OortTransport", "ServerTesting", logging,
                ]
            ),
            tests("OortFTPTests", ["OortFTP", "OortModel", "OortTransport", "ServerTesting"]),
            tests(
                "OortWeatherTests",
                ["OortWeather", "OortModel", "OortTransport", logging]
            ),
            tests("OortModelTests", ["OortModel", "OortProcesses", system]),
            tests("OortPlacesTests", ["OortPlaces", "OortModel", "OortTesting", grdb, logging]),
            tests("OortPlannerTests", ["OortPlanner", "OortModel", "OortTesting"]),
            tests("OortCatalogTests", ["OortCatalog", "OortPlanner", "OortModel", grdb, logging]),
            tests(
                "OortContentStoreTests",
                ["OortContentStore", "OortCatalog", "OortModel", "OortTesting", logging]
            ),
            tests(
                "OortSyncTests",
                [
                    "OortSync", "OortCatalog", "OortContentStore", "OortPlaces", "OortPlanner",
                    "OortModel", "OortTesting", collections,
                ]
            ),
            tests(
                "OortFileSystemTests",
                [
                    "OortFileSystem", "OortCatalog", "OortContentStore", "OortPlanner", "OortModel",
                    "OortTesting", logging,
                ]
            ),
            tests(
                "OortFUSETests",
                [
                    "OortFUSE", "SwiftFUSE", "OortFileSystem", "OortContentStore", "OortCatalog",
                    "OortModel", "MountTesting", logging,
                ]
            ),
            tests(
                "OortTransportTests",
                [
                    "OortTransport", "OortModel", "OortProcesses", "OortTesting", "MountTesting",
                    flyingFox, logging, system,
                ]
            ),
            tests(
                "OortSignInTests",
                [
                    "OortSignIn", "OortProcesses", "OortTransport", "OortModel", "OortTesting",
                    crypto,
                    flyingFox, logging, system,
                ]
            ),
            tests(
                "OortWebDAVTests",
                [
                    "OortWebDAV", "OortPlaces", "OortModel", "OortSimulators", "OortTransport",
                    "OortTesting", "ServerTesting", logging,
                ]
            ),
            tests(
                "OortSimulatorsTests",
                ["OortSimulators", "OortS3", "OortSignIn", "OortModel", "OortTransport"]
            ),
            tests(
                "OortProviderTests",
                [
                    "OortModel", "OortTransport", "OortSignIn", "OortSimulators", "OortTesting",
                    "OortPlaces", "OortWebDAV", "OortSFTP", "OortFTP", "OortS3", "ServerTesting",
                    "MountTesting", logging,
                ]
                    + services.map { .init(stringLiteral: "Oort\($0)") }
            ),
        ]
)
