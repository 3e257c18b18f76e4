package problem

import (
	"fmt"
	"slices"
	"strings"
)

// docs is the closed list. What docs/problems.md says is written from it.
var docs = []struct {
	title string
	codes []Doc
}{
	{"Files", []Doc{
		{FileTooLarge, "A file is larger than the cap for one file (1 MiB).", "Split the file, or raise the cap."},
		{CatalogTooLarge, "With this file, all files together are larger than the cap (8 MiB). Those after it are not read.", "Take out what is no part of the catalog, or raise the cap."},
		{TooManyFiles, "The catalog has more files and directories than the cap (5,000).", "Take out what is no part of the catalog, or raise the cap."},
		{TooManyTools, "The catalog declares more tools than the cap (10,000).", "Take some out, or raise the cap."},
		{TooManyFields, "One struct of a file has more declarations than CUE evaluates in reasonable time (20,000).", "Split the file into packages, which are directories."},
		{NotUTF8, "A file is not UTF-8 text (UTF-16, another encoding, a NUL byte), or its name is not.", "Save the file as UTF-8; give it a name of ordinary characters."},
		{BadSymlink, "A symlink leads nowhere, leaves the catalog's root, or points at a directory that it stands in.", "Remove the link, or copy what it points at into the catalog."},
		{NotRegular, "A file that is called like a part of the catalog is a pipe, a socket, a device or a directory.", "Remove it, or give it another name."},
		{Unreadable, "A file can't be read, or the catalog kept changing while it was read.", "Give the user that catalogd runs as the permission to read; or try again when whatever writes has ended."},
		{LoadTimeout, "The evaluation of the package, or the reading of the file, took longer than the limit (10 s) and was ended. CUE may never finish it.", "Take out what was written last, above all values that double, multiply or generate; or raise --compile-timeout."},
		{LoadMemory, "The evaluation of the package needed more memory than the limit (1 GiB) and was ended.", "Take out what was written last, above all values that double, multiply or generate; or raise --compile-memory."},
		{LoadFailed, "The process that compiles the catalog can't be started, or ended in the middle; or the build failed by a fault of catalogd.", "Try again; the log has its last words. If it happens again with the same files, report it to catalogd with them."},
		{NoCatalog, "There is no catalog: the directory can't be read, or none of its files has `package catalog`.", "Name the right directory, or run `catalogd init`."},
		{BadBuildFile, "The file that `--build` names can't be read, is no build, is damaged, or was written by another version of catalogd.", "Make it again with the `catalogd build -o FILE` of the version that serves it."},
	}},
	{"CUE", []Doc{
		{CUESyntax, "The file is no CUE.", "Fix the syntax at the place named; `cue fmt` shows the same."},
		{CUEConflict, "Two places give one value, and they differ. Both are named.", "Keep one of them."},
		{CUEIncomplete, "A value is left open where the catalog needs one.", "Give it a value or a default."},
		{CUECycle, "A value depends on itself.", "Break the circle."},
		{CUEReference, "A name refers to nothing.", "Fix the name, declare it, or import it."},
		{CUEValue, "A value is not what the schema takes, or its evaluation fails.", "Write one of the values that the message names."},
		{CUEImport, "An import is refused or leads nowhere: a catalog imports from its own module and from CUE's standard packages, without tool/*. Also an import that nothing uses, and packages that import each other.", "Fix the path, copy what you need into the module, or remove the import."},
		{CUEEmbed, "The file uses @embed or @extern, which would make the build depend on files that are no CUE of the catalog.", "Write the value in CUE."},
		{CUETag, "A @tag is malformed, asks for a value from the host, has a value of the wrong type, or a tag is given that no file asks for.", "Fix the attribute or the -t flag."},
		{CUEModule, "cue.mod/module.cue is missing or is no module file that this version knows.", "Run `catalogd init`, or fix the file."},
		{UnknownField, "A field stands where the schema has none of that name; mostly it is misspelt.", "Write the field that the message suggests; call a value of your own _name or #Name."},
		{MissingField, "A field that must always stand is missing.", "Write it."},
		{SchemaDiffers, "schema.cue is missing or is not the one of this version of catalogd.", "Run `catalogd init --upgrade`."},
		{NotCatalogPackage, "Nothing reads the file: it has no package clause, or another package that nothing imports, or a name that CUE leaves out (*_tool.cue, *_test.cue). An error where the file declares something, else a warning.", "Begin the file with `package catalog`, rename it, import its package, or remove it."},
		{BadName, "A name of a tool, server or branch is one that some client or model provider refuses.", "Use a letter or _, then up to 62 letters, digits, _ or -."},
		{NameConfusable, "Two names differ only in case (error), or only in - and _ (warning). Discovered tools whose names differ only in case are left out (warning).", "Rename one of them."},
		{DuplicateName, "One name is declared in more than one file. All are named, and nothing of that name is served. Discovered tools of one name are left out (warning).", "Keep one declaration, or give the others their own names."},
		{UnsupportedConstr, "An argument is written in a way that no call could satisfy (`list.Contains` on a required list, a number beyond 1.8e308), that means something else than it seems to (`...` under strictness closed, `float`; warnings), or that exceeds a limit of schemas.", "Write it in the way that the message suggests."},
		{BadRegex, "A pattern is no regular expression of RE2, which knows no look-around and no back-references.", "Fix the pattern."},
		{StrictOptional, "A tool of strictness exact has an optional argument.", "Make the argument required (name!), or choose closed."},
		{BadDefault, "CUE never fills in a default: the constraints beside it refuse it, or its field is marked ! or ? (a warning).", "Choose a default that fits, or remove the mark."},
		{LossyContract, "JSON Schema can't say a constraint of an argument or a result. CUE holds every call to it all the same; only `check --strict` makes it an error.", "Write the constraint in a way that JSON Schema has, or check without --strict."},
		{BadAttribute, "An attribute of an argument says what can't be: @title and @examples take JSON, the examples must be values that the argument takes, @deprecated() and @secret() take nothing. A misspelt name is a warning.", "Fix the attribute, behind its field."},
		{BadText, "A text that people and models read (a title, a description, a tag, an example) has a character that can't be seen or changes how others are shown, or is too long: more than 16 KiB, or 256 KiB for all examples of a tool.", "Take the character out; say it shorter."},
		{UnknownServer, "A tool or a branch names a server that nobody declares.", "Fix the name, or declare the server."},
		{UnknownTool, "A branch names a tool that nobody declares.", "Fix the name, or declare the tool."},
		{EmptySelection, "A pattern or tag of a branch matches no tool. A warning.", "Fix it, or take it out."},
		{ContradictoryField, "Fields are set that exclude each other, such as two kinds of binding, or `idempotent` of a tool that only reads.", "Keep exactly one."},
	}},
	{"Bindings", []Doc{
		{ReservedName, "A tool has a name that catalogd keeps for a tool of its own: intent_get, intent_list, intent_cancel.", "Choose another name; for a server's tool, `rename`."},
		{BadBinding, "A binding can't work: a command that is not there or not executable, an address without a fixed host, a header that is none.", "Fix what the message names."},
		{BadPlaceholder, "A placeholder names no argument, or one that may be missing or is no string, number or boolean; or an idempotency key has none.", "Declare the argument as required or with a default and with such a type, or write {{name}} for a literal {name}."},
		{BadJQ, "A jq program does not compile, is longer than 64 KiB, or uses what is switched off.", "Fix the program at the place named."},
		{BadSecret, "A reference to a secret is neither env:NAME nor file:PATH.", `Write {secret: "env:NAME"} or {secret: "file:PATH"}.`},
		{LiteralSecret, "A secret is written out in the catalog or the policy: a token of a known form, or a value under a name that says secret. While there is one, nothing else is said of the catalog, as another message might repeat it.", "Revoke it, as everybody who could read the file has it. Put its successor into the environment or a file, and refer to that where headers and env take `{secret: \"env:NAME\"}`. A value that is none: write it so that it says so, as `YOUR_TOKEN` or `{token}` do."},
		{BadExample, "An example contradicts itself, or its call answers something else than it says.", "Fix the example or the tool."},
		{StoredSecret, "A tool with effect \"write\" has an argument with @secret(), or a result with one, at any depth; or the server of a discovered one declares such an argument or result (`writeOnly`). What such a tool is given and answers is stored. A discovered tool is left out (warning).", "Take the argument out, and have the binding get the secret by reference: `{secret: \"env:NAME\"}` in headers and env. Of a discovered tool that changes nothing, say so: `catalogd lock --effect read NAME`."},
		{SuspectEffect, "A tool says that it only reads, and sends a POST, PUT, PATCH or DELETE. A warning.", `Write effect: "write" if the request changes anything.`},
	}},
	{"Upstream servers", []Doc{
		{BadLock, "catalog.lock.json is not as `catalogd lock` writes it, or a digest in it is not the definition's.", "Take the file back from git, or remove it and run `catalogd lock`."},
		{NotLocked, "A server discovers its tools, and nothing of it is locked, so it has none. A warning.", "Run `catalogd lock`, and review what it wrote."},
		{StaleLock, "The lock has a server or a tool that the catalog doesn't choose any more. A warning.", "Run `catalogd lock`, which takes it out, or fix `discover`."},
		{BadDefinition, "A locked tool can't be offered, because its schema can't be checked. Its siblings are served. A warning.", "Leave it out with `except`, or have the server fixed."},
		{Quarantined, "The policy doesn't let a locked tool be used, because it is not what the server offers. A warning.", "See `catalogd drift`; `catalogd lock --accept NAME` takes what the server offers now."},
		{UpstreamMismatch, "A declared tool can be called with arguments that the locked tool of its server refuses. A warning.", "Narrow the tool's args to what the message names."},
	}},
	{"Policy", []Doc{
		{NoPolicy, "There is no policy, so everything would be denied.", "Run `catalogd init`, or write policy/."},
		{RegoSyntax, "The file is no Rego (v1).", "Fix the syntax at the place named; `opa fmt` shows the same."},
		{RegoCompile, "A module does not compile: a type error, an unsafe variable, recursion, or a field that the input doesn't have.", "Fix what the message names."},
		{RegoBuiltin, "A module uses a built-in that is not allowed, because it reaches out of the policy or makes decisions differ.", "Do without it, or put what it looks up into data."},
		{PolicyPoint, "A decision point lacks its rules, or a package or file is not one that is ever asked. As a warning: a rule of a point or helper is in a `_test.rego` file, where only tests see it; or the catalog has a tool with a side effect, and the policy no package `catalogd.release`.", "Declare `allow` in the package that the message names, or move the rule to a module that is served."},
		{PolicyData, "A data file of the policy can't be read, collides with another, or has an entry that means nothing.", "Fix the file at the place named."},
		{PolicyTimeout, "A decision of a build, check or review ran into its deadline, 5 s of work. A daemon leaves what it is about out, and asks again until it is decided; more than five tools or servers refuse the build.", "Make the rule that the point asks cheaper: look up by key instead of walking over lists."},
		{PolicyFailed, "The policy failed to answer a decision, by an error, an output of the wrong type or one without a value, so that something is denied or hidden that no rule denies. A warning for each point, with how often and an example; `check` asks about all that is declared, `/status` says what happened since the generation began to serve.", "Correct the rule at the place named, so that it has a value of the right type for every input; `catalogd explain BRANCH TOOL` shows the decision."},
		{ResultWithheld, "The policy takes something out of every result of a tool by a JSON pointer, and no result could leave without it: the tool answers text that is no JSON, or its declared result requires what is taken out. Only `check` looks for it; a warning.", "Declare `result` and make what is taken out optional there, answer JSON, use redact_patterns, or take the tool out of the rule."},
		{SuspectMatch, "A policy compares by a part of a text what lookalikes such as /opt/tools-evil fit too: a part of input.target by `startswith` and its like, URLs and paths by it anywhere, any part of the input by `contains`, or by a regular expression that need not match the whole text. A warning.", "Compare parts with `==` or `in`, URLs with `data.catalogd.lib.url.parts`, paths with `data.catalogd.lib.path.within`, and anchor regular expressions with ^ and $."},
		{MissingDefault, "A policy uses a rule or function that is true or has no value as if it could be false: compares it with false, or puts it into an object, an array or another rule. A warning.", "Write `default name := false` in the rule's package, or `not name`."},
		{SuspectNegation, "A rule says `not` of something that may have no value, such as an argument that is missing: OPA evaluates what a negated expression is made of first, so that the rule has no value where its author means it to hold. An error where that lets something through, as in `deny`; a warning where it may.", "Write `import future.keywords.not` below the module's package: `not` then includes what it is made of."},
		{UnknownName, "A policy or its data compares a tool, server, branch, tag, label or trust entry with a name that nothing of the catalog has. Only `check` looks for it; a warning.", "Fix the name, or take out what speaks of it."},
		{UnknownArgument, "A rule looks at an argument that none of the tools has that it can be about, so it is never true, or always. Only `check` looks for it; a warning.", "Correct the name; `catalogd list BRANCH TOOL` shows what a tool takes."},
		{ArgumentType, "A rule compares an argument with a value of another type, or hands it to a function that takes none of its type. Only `check` looks for it; a warning.", "Compare it with a value of its type."},
		{UnusedTrust, "Nothing that the catalog declares is reached through a trust entry. Only `check` looks for it; a warning.", "Fix the entry until `catalogd trust` shows it beside what it is for, or take it out."},
		{NeverTrue, "A rule that is to let something happen was true for no declared tool, branch and principal. Only `check` looks for it; a warning.", "Fix the rule, or take it out; `catalogd explain BRANCH TOOL` shows which rules are true for a call."},
		{EmptyBranch, "The policy refuses a branch every tool that it could show, so it lists none. A warning.", "Name the branch and its tools in policy/access/data.yaml; `catalogd explain BRANCH TOOL` shows which rules answer."},
		{UnseenTool, "No branch shows a tool: none admits it, or the policy refuses it to those that do. Only `check` looks for it; a warning.", "Let a branch select it, name it in policy/access/data.yaml, or take it out; `catalogd explain BRANCH TOOL` shows which rules answer."},
		{UntrustedServer, "The policy trusts no connection to a server, so its tools are hidden. A warning.", "Read what `catalogd trust --propose NAME` prints, and put it into policy/trust/data.yaml if it is meant."},
		{UntrustedBinding, "The policy trusts a tool's command or address not at all, so the tool is hidden. A warning.", "Read what `catalogd trust --propose NAME` prints, and put it into policy/trust/data.yaml if it is meant."},
		{AdoptionDenied, "The policy that is serving refuses this build.", "Read the reasons; change the build, or what the serving policy decides by."},
		{WorldWritable, "Other users of the computer may change a file that decides what may be reached or run.", "Take away their permission to write."},
	}},
}

// Docs returns every code with its meaning and remedy, in the order of docs/problems.md.
func Docs() []Doc {
	var out []Doc
	for _, group := range docs {
		out = append(out, group.codes...)
	}
	return slices.Clip(out)
}

// Markdown is docs/problems.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Problems\n\n" +
		"What `catalogd check` and a failed reload report, one line each: `file:line:col: code: path: message`. The codes are a\n" +
		"closed list. An error refuses the build, and what was served before stays; a warning changes nothing. All problems are\n" +
		"reported in one pass, sorted by place.\n\n" +
		"This file is written from problem/docs.go (`go test ./problem -update`).\n")
	for _, group := range docs {
		fmt.Fprintf(&b, "\n## %s\n\n| code | what it means | what to do |\n|---|---|---|\n", group.title)
		for _, d := range group.codes {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Code, cell(d.Meaning), cell(d.Remedy))
		}
	}
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
