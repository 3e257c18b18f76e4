// Package loader reads a catalog and compiles it into plain data, with every problem at its file, line and column.
//
// # The model
//
// A Source yields a Snapshot: the files of one catalog at one moment, in memory, with one digest over CUE, Rego, data
// and tags. Whoever evaluates policies and whoever compiles tools read the same snapshot, so they never disagree, and
// nothing reads the disk again. Dir is the Source for a directory, Tree the one for an fs.FS.
//
// A Compiler turns a snapshot into a registry.Build. Its unit of work is the package, which in CUE is a directory
// together with what it inherits from the directories above it. A package is evaluated in a cue.Context of its own, in
// parallel with others, and only if one of its files, of its imports' files, the schema or the tags has changed since
// the last time. What spans packages (a name in two places, a server that nobody declares) is checked afterwards over
// the plain results.
//
// Compile never stops at the first problem: a file that doesn't parse, a package that doesn't evaluate and a tool that
// lacks a field are each reported, and none hides what is wrong elsewhere. Only a build without errors may be served;
// that is the caller's to decide, by problem.List.HasErrors.
//
// Watch says that something may have changed; whether anything did is what the next snapshot's digest tells.
//
// # What a catalog can't do
//
// Evaluation reaches nothing outside the snapshot: no registry, no network, no @embed, no tool/* packages, no host
// values through @tag(var=...). CUE itself can't be cancelled, so a caller that must survive a hostile catalog compiles in
// a process that it can end.
package loader
