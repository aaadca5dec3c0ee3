// Package config reads wyegate.yaml. It is data only: types with tags, no behaviour of their own, nothing that opens a
// socket or a file. What the file says becomes what runs in internal/engine.
//
// The way of one configuration: Load takes a file system and the name of the main file. Each file is parsed to a tree of
// nodes that know their places (tree.go); the trees of includes are merged by name (merge.go); one walk over the merged
// tree fills the types, key by key, with variables filled in and every mistake noted (decode.go); the cross checks look
// at what a single key cannot show (check.go). The walk, the defaults, Show and the JSON Schema all read the same struct
// tags, so they cannot differ. What comes back is the Config and every Problem of every file, each with its place.
//
// A part that is not in this build is refused by the one table in refused.go (WG014).
//
// Test files (*.test.yaml) are read by the same walk: LoadTests.
package config
