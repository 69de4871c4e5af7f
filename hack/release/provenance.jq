# Statement v1 of in-toto with the predicate of SLSA provenance v1. It names no time, so that the same commit gives the same one.
($subjects | split("\n") | map(select(. != "") | split("  ") | {name: .[1], digest: {sha256: .[0]}})) as $files
| {
    _type: "https://in-toto.io/Statement/v1",
    subject: $files,
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "https://carto.run/release/v1",
        externalParameters: {version: $version, architectures: ($archs | split(",")), dryRun: ($dry != "")},
        internalParameters: {rust: $rust, go: $go},
        resolvedDependencies: [
          ({digest: {gitCommit: $revision}} + if $source == "" then {} else {uri: "git+\($source)"} end),
          {name: "Cargo.lock", digest: {sha256: $lock}}
        ]
      },
      runDetails: {builder: {id: $builder}}
    }
  }
