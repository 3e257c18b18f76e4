// Package buildcache keeps compiled catalogs on disk: as build files, which people write with `catalogd
// build` and serve with `serve --build`, and in the state directory, which the daemon keeps from one start to
// the next.
//
// A Compiled is what a snapshot of a catalog compiled to: the build, the compiler's warnings and, in a build
// file, the policy's files of the same snapshot. It holds references to secrets and no secret. internal/wire
// encodes it, so equal contents have equal bytes; what is decoded is validated first, because nothing behind
// the loader looks again at what the loader guarantees.
//
// The state directory belongs to one user and has mode 0700, or it is refused. It has a folder for each
// catalog:
//
//	build-*   Compiler: the builds that this very program compiled, by everything that they depend on
//	lists-*   Cache.Lists: the answers of list decisions, by the policy that gave them
//	adopted   Record: the generation that was adopted last, for any version of catalogd
//	children/ the private directories of child processes (egress.Homes)
//	intents/  side effects (internal/intent); the one thing here that can't be made again
//
// Nothing that is read back grants anything. Connect and adopt decisions are made anew at each start, and
// call decisions at each call; a cached list decision only says which tools a branch lists. A forged file can
// change what the decisions are asked about, as a change of the catalog can.
//
// A damaged cache file costs a compilation and a warning. A damaged record is an error, because ignoring it
// would ignore the policy in it.
//
// Any number of processes may share a directory without a lock: files are written under another name and
// renamed, so a reader sees a whole file or none, and two writers of one cache file write the same content.
package buildcache
