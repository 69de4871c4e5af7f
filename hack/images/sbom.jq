# Of what cargo-sbom writes: what is linked into the binary, with what else is in the image, in an order that does not change.

def words: split("\n") | map(select(. != "") | split(" "));
def id: gsub("[^A-Za-z0-9.-]"; "-");
def relation($a; $type; $b): {spdxElementId: $a, relationshipType: $type, relatedSpdxElement: $b};

# A package that Cargo does not know.
def package($kind; $name; $version; $license; $purl):
  {SPDXID: "SPDXRef-\($kind)-\($name)-\($version)" | id, name: $name, versionInfo: $version, downloadLocation: "NOASSERTION",
   filesAnalyzed: false, licenseConcluded: $license, licenseDeclared: $license, copyrightText: "NOASSERTION"}
  + if $purl == null then {} else
      {externalRefs: [{referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator: $purl}]} end;

($crates | words | map({key: "\(.[0]) \(.[1] | ltrimstr("v"))", value: true}) | from_entries) as $linked
| ($modules | words | map(package("Go"; .[0]; .[1]; "NOASSERTION"; "pkg:golang/\(.[0])@\(.[1])"))) as $go
| [package("Library"; "rust-std"; $rust; "MIT OR Apache-2.0"; null),
   package("Library"; "glibc"; $glibc; "LGPL-2.1-or-later"; null)] as $libraries
| [.packages[] | select($linked["\(.name) \(.versionInfo)"])
   # Where it is from stands in its purl; Cargo's way of writing it is none of SPDX.
   | . + {filesAnalyzed: false, copyrightText: "NOASSERTION", downloadLocation: "NOASSERTION"}] as $cargo
| ($cargo | map({key: .SPDXID, value: true}) | from_entries) as $ids
| ($cargo[] | select(.name == $package) | .SPDXID) as $root
| (package("Image"; $name; $version; "MIT OR Apache-2.0"; null) + {primaryPackagePurpose: (if $name == $package then "CONTAINER" else "APPLICATION" end)}) as $image
| if ($cargo | length) != ($linked | length) then
    error("cargo-sbom knows \($cargo | length) of the \($linked | length) crates that are linked") else . end
| .name = "\($name)-\($version)-linux-\($arch)"
| .documentNamespace = "https://carto.run/spdx/\(.name)-\($revision)"
| .creationInfo.created = $created
| del(.files)
| .documentDescribes = [$image.SPDXID]
| .packages = ([$image] + ($cargo + $go + $libraries | sort_by(.SPDXID)))
| .relationships = ([relation("SPDXRef-DOCUMENT"; "DESCRIBES"; $image.SPDXID), relation($image.SPDXID; "CONTAINS"; $root)]
    + [$go[0:1][] | relation($image.SPDXID; "CONTAINS"; .SPDXID)]
    + [$go[1:][] | relation($go[0].SPDXID; "DEPENDS_ON"; .SPDXID)]
    + [$libraries[] | relation($root; "STATIC_LINK"; .SPDXID)]
    + ([.relationships[] | select($ids[.spdxElementId] and $ids[.relatedSpdxElement])]
       | sort_by(.spdxElementId, .relatedSpdxElement)))
