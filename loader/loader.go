// Package loader reads a catalog and compiles it into plain data, and reports every problem with its file,
// line and column.
//
// # The model
//
// A Source yields a Snapshot: the files of one catalog at one moment, in memory, with one digest over CUE,
// Rego, data and tags. Policies and tools are compiled from the same snapshot, so they never disagree, and
// nothing reads the disk again. Dir is the Source for a directory, Tree the one for an fs.FS.
//
// A Compiler compiles a snapshot into a registry.Build. Its unit of work is the package, which in CUE is a
// directory together with what it inherits from the directories above it. A package is evaluated in its own
// cue.Context, in parallel with others, and only if one of its files, a file of its imports, the schema or
// the tags have changed since the last build. Checks that span packages (duplicate names, undeclared servers)
// run afterwards on the plain results.
//
// Compile never stops at the first problem: a file that doesn't parse, a package that doesn't evaluate and a
// tool that lacks a field are each reported, and none hides errors elsewhere. Only a build without errors may
// be served; the caller checks that with problem.List.HasErrors.
//
// Watch reports that something may have changed; the digest of the next snapshot shows whether anything did.
//
// # What a catalog can't do
//
// Evaluation reaches nothing outside the snapshot: no registry, no network, no @embed, no tool/* packages, no
// host values through @tag(var=...). CUE itself can't be cancelled, so a caller that must survive a hostile
// catalog compiles in a process that it can kill.
package loader
