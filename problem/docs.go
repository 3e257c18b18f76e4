package problem

import (
	"fmt"
	"slices"
	"strings"
)

// docs is the closed list of codes, from which Markdown generates docs/problems.md.
var docs = []struct {
	title string
	codes []Doc
}{
	{"Files", []Doc{
		{FileTooLarge, "A file is larger than the limit for one file (1 MiB).", "Split the file, or raise the limit."},
		{CatalogTooLarge, "With this file, the total size of the files exceeds the limit (8 MiB). Later files are not read.", "Remove what is not part of the catalog, or raise the limit."},
		{TooManyFiles, "The catalog has more files and directories than the limit (5,000).", "Remove what is not part of the catalog, or raise the limit."},
		{TooManyTools, "The catalog declares more tools than the limit (10,000).", "Remove some, or raise the limit."},
		{TooManyFields, "One struct of a file has more declarations than CUE evaluates in reasonable time (20,000).", "Split the file into packages, which are directories."},
		{NotUTF8, "A file is not UTF-8 text (UTF-16, another encoding, a NUL byte), or its name is not.", "Save the file as UTF-8; give it a name of ordinary characters."},
		{BadSymlink, "A symlink points at nothing, outside the catalog's root, or at a directory that contains it.", "Remove the link, or copy what it points at into the catalog."},
		{NotRegular, "A file with the name of a catalog file is a pipe, a socket, a device or a directory.", "Remove it, or give it another name."},
		{Unreadable, "A file can't be read, or the catalog kept changing while it was read.", "Give the user of catalogd the permission to read it, or try again when no program writes to the catalog."},
		{LoadTimeout, "The evaluation of the package, or the reading of the file, took longer than the limit (10 s) and was stopped. CUE may never finish it.", "Remove what was written last, above all values that double, multiply or generate; or raise --compile-timeout."},
		{LoadMemory, "The evaluation of the package needed more memory than the limit (1 GiB) and was stopped.", "Remove what was written last, above all values that double, multiply or generate; or raise --compile-memory."},
		{LoadFailed, "The process that compiles the catalog can't be started or ended early, or the build failed because of a bug in catalogd.", "Try again; the log has its last output. If it happens again with the same files, report it to catalogd with them."},
		{NoCatalog, "There is no catalog: the directory can't be read, or none of its files has `package catalog`.", "Name the right directory, or run `catalogd init`."},
		{BadBuildFile, "The file that `--build` names can't be read, is not a build, is damaged, or was written by another version of catalogd.", "Make it again with the `catalogd build -o FILE` of the version that serves it."},
	}},
	{"CUE", []Doc{
		{CUESyntax, "The file is not valid CUE.", "Write what the message says; `cue fmt` reports the file in CUE's own words."},
		{CUEConflict, "Two places give different values to one field. Both are reported.", "Keep one of them."},
		{CUEIncomplete, "A value is incomplete where the catalog needs a concrete one.", "Give it a value or a default."},
		{CUECycle, "A value depends on itself.", "Break the cycle."},
		{CUEReference, "A name refers to nothing.", "Fix the name, declare it, or import it."},
		{CUEValue, "A value does not match the schema, or its evaluation fails.", "Write one of the values that the message lists."},
		{CUEImport, "An import is not allowed or can't be found: a catalog imports from its own module and from CUE's standard packages, without tool/*. Also an import that nothing uses, and packages that import each other.", "Fix the path, copy what you need into the module, or remove the import."},
		{CUEEmbed, "The file uses @embed or @extern, which would make the build depend on files that are not CUE files of the catalog.", "Write the value in CUE."},
		{CUETag, "A @tag is malformed, asks for a value from the host, has a value of the wrong type, or a tag is given that no file asks for.", "Fix the attribute or the -t flag."},
		{CUEModule, "cue.mod/module.cue is missing or is not a module file that this version supports.", "Run `catalogd init`, or fix the file."},
		{UnknownField, "The schema has no field of that name at this place; usually the name is misspelt.", "Write the field that the message suggests; name a value of your own _name or #Name."},
		{MissingField, "A required field is missing.", "Add it."},
		{SchemaDiffers, "schema.cue is missing or is not the one of this version of catalogd.", "Run `catalogd init --upgrade`."},
		{NotCatalogPackage, "The file is not read: it has no package clause, or is of another package that nothing imports, or has a name that CUE ignores (*_tool.cue, *_test.cue). An error if the file declares something, else a warning.", "Begin the file with `package catalog`, rename it, import its package, or remove it."},
		{BadName, "Some clients or model providers refuse this name of a tool, server or branch.", "Use a letter or _, then up to 62 letters, digits, _ or -."},
		{NameConfusable, "Two names differ only in case (error), or only in - and _ (warning). Discovered tools whose names differ only in case are left out (warning).", "Rename one of them."},
		{DuplicateName, "A name is declared in more than one file. All are reported, and nothing of that name is served. Discovered tools with the same name are left out (warning).", "Keep one declaration, or give the others their own names."},
		{UnsupportedConstr, "An argument is written in a way that no call could satisfy (`list.Contains` on a required list, a number beyond 1.8e308), that does not mean what it seems to mean (`...` under strictness closed, `float`, `\"string\"` or JSON Schema for a type; warnings), or that exceeds a limit of schemas.", "Write it as the message suggests."},
		{BadRegex, "A pattern is not a regular expression of RE2, which has no look-around and no back-references.", "Fix the pattern."},
		{StrictOptional, "A tool of strictness exact has an optional argument.", "Make the argument required (name!), or choose closed."},
		{BadDefault, "CUE never uses a default, because other constraints exclude it, or because its field is marked ! or ? (a warning).", "Choose a default that satisfies the constraints, or remove the mark."},
		{LossyContract, "JSON Schema can't express a constraint of an argument or a result. CUE enforces it in every call; only `check --strict` makes it an error.", "Write the constraint in a way that JSON Schema can express, or check without --strict."},
		{BadAttribute, "An attribute of an argument is invalid: @title and @examples take JSON, the examples must be values that the argument accepts, @deprecated() and @secret() take nothing, @header takes a name that clients of 2026-07-28 can use. A misspelt name is a warning.", "Fix the attribute after its field."},
		{BadText, "A text that people and models read (a title, a description, a tag, an example) has a character that is invisible or changes how others are shown, or is too long: more than 16 KiB, or 256 KiB for all examples of a tool.", "Remove the character; shorten the text."},
		{UnknownServer, "A tool or a branch names a server that is not declared.", "Fix the name, or declare the server."},
		{UnknownTool, "A branch names a tool that is not declared.", "Fix the name, or declare the tool."},
		{EmptySelection, "A pattern or tag of a branch matches no tool. A warning.", "Fix it, or remove it."},
		{ContradictoryField, "Fields are set that exclude each other, such as two kinds of binding, or `idempotent` of a tool that only reads.", "Keep exactly one."},
		{BadNarrowing, "What a branch narrows of a tool is wider than the tool, takes nothing away from it, or can't be expressed. The positions are those of the narrowing and of what the tool declares.", "Write less than the tool accepts, or leave it out ([branches.md](branches.md))."},
	}},
	{"Bindings", []Doc{
		{ReservedName, "A tool has the name of a built-in tool: intent_get, intent_list, intent_cancel.", "Choose another name; for a server's tool, `rename`."},
		{MissingCommand, "The command of a server or of an `exec` tool is not on this machine or can't be run there, so its tools are hidden. A warning.", "Install the command or do what the message says of its file, or write its path; then reload."},
		{BadBinding, "A binding can't work: a command line in place of a command's name, an address without a fixed host, an invalid header.", "Fix what the message names."},
		{BadPlaceholder, "A placeholder names no argument, or one that may be missing or is not a string, number or boolean; or an idempotency key has no placeholder.", "Declare the argument as required or with a default and with such a type, or write {{name}} for a literal {name}."},
		{BadJQ, "A jq program does not compile, is longer than 64 KiB, or uses a disabled feature.", "Fix the program at the reported position."},
		{BadSecret, "A reference to a secret is neither env:NAME nor file:PATH.", `Write {secret: "env:NAME"} or {secret: "file:PATH"}.`},
		{LiteralSecret, "A secret is written out in the catalog or the policy: a token of a known form, or a value under a name that means a secret. While there is one, no other problem of the catalog is reported, because another message might repeat it.", "Revoke it, because everybody who could read the file has it. Put the new one into the environment or a file, and refer to it where headers and env take `{secret: \"env:NAME\"}`. If the value is not a secret, make it look like a placeholder, such as `YOUR_TOKEN` or `{token}`."},
		{BadExample, "An example contradicts itself, or its call has another result than the example says.", "Fix the example or the tool."},
		{StoredSecret, "A tool with effect \"write\" has an argument with @secret(), or a result with one, at any depth; or the server of a discovered one declares such an argument or result (`writeOnly`). The arguments and results of such a tool are stored. A discovered tool is left out (warning).", "Remove the argument, and give the binding the secret by reference: `{secret: \"env:NAME\"}` in headers and env. If a discovered tool changes nothing, lock it as such: `catalogd lock --effect read NAME`."},
		{SuspectEffect, "A tool is declared with effect \"read\", but sends a POST, PUT, PATCH or DELETE, has a shell or an interpreter run what a call brings, or calls a tool that its server does not call read-only (`readOnlyHint`); or the lock says so of a server's tool. A warning.", "Write effect: \"write\" (in the lock: `catalogd lock --effect write NAME`) if it changes anything; say in effectNote why it does not (of a discovered tool in `discover: tools: NAME`)."},
		{UnusedEffectNote, "A tool has an effectNote, and neither sends a POST, PUT, PATCH or DELETE, nor runs a command, nor calls a tool that its server does not call read-only, or its effect is \"write\". A warning.", "Take effectNote away."},
		{UnknownFunction, "A tool's binding names a Go function (`func`) that this program does not have. It is a warning, and the tool is hidden, where a command looks at a catalog that another program embeds.", "Fix the name, or put the function into catalogd.Config.Functions. For `catalogd check` and the like, describe the program's functions with --functions FILE (docs/go.md)."},
		{FunctionMismatch, "The args of a tool accept something that its Go function does not take, or its Go function may return something that its result does not accept; or it can't be shown that they don't.", "Narrow the argument that the message names, such as int64 for int, or declare what the function's output type has; or leave args or result out, so that they are derived from the function."},
	}},
	{"Upstream servers", []Doc{
		{BadLock, "catalog.lock.json is not in the form that `catalogd lock` writes, or a digest in it does not match its definition.", "Restore the file from git, or remove it and run `catalogd lock`."},
		{NotLocked, "A server has `discover`, but none of its tools is locked, so it has no tools. A warning.", "Run `catalogd lock`, and review what it wrote."},
		{StaleLock, "The lock has a server or a tool that the catalog no longer selects. A warning.", "Run `catalogd lock`, which removes it, or fix `discover`."},
		{BadDefinition, "A locked tool can't be served, because its schema can't be checked. The server's other tools are served. A warning.", "Exclude it with `except`, or have the server fixed."},
		{Quarantined, "The policy does not allow a locked tool, because the server's definition has changed. A warning.", "See `catalogd drift`; `catalogd lock --accept NAME` accepts the server's current definition."},
		{UpstreamMismatch, "A declared tool can be called with arguments that the locked tool of its server refuses. A warning.", "Narrow the tool's args to what the message names."},
	}},
	{"Policy", []Doc{
		{NoPolicy, "There is no policy, so every call would be denied.", "Run `catalogd init`, or write policy/."},
		{LibraryDiffers, "A file of the policy's library (`policy/catalogd/`) is not as this version of catalogd has it: it was changed by hand, or is of another version. A warning.", "Write rules of your own into policy/NAME.rego, and run `catalogd init --upgrade`, which restores the library."},
		{RegoSyntax, "The file is not valid Rego (v1).", "Fix the syntax error at the reported position; `opa fmt` shows the same."},
		{RegoCompile, "A module does not compile: a type error, a variable without a value, recursion, a field that the input doesn't have, or a rule, package or function that doesn't exist.", "Fix what the message names."},
		{RegoBuiltin, "A module uses a built-in that is not allowed, because it accesses something outside the policy or makes decisions differ between evaluations.", "Avoid it, or put what it looks up into data."},
		{PolicyPoint, "A decision point lacks its rules, or a package or file is never evaluated. As a warning: a rule of a point or helper is in a `_test.rego` file, where only tests see it; or the catalog has a tool with a side effect, but the policy has no package `catalogd.release`.", "Declare `allow` in the package that the message names, or move the rule to a module that is not a test."},
		{PolicyData, "A data file of the policy can't be read, conflicts with another, or has an entry without a meaning. As a warning: no module looks at a file's data, or a module at data that no file gives.", "Fix the file at the reported position."},
		{PolicyTimeout, "A decision of a build, check or review exceeded its time limit of 5 s of processor time. A daemon hides the tool or server, and asks again until it is decided; more than five of them fail the build.", "Make the rules of the decision point cheaper: look up by key instead of iterating over lists."},
		{PolicyFailed, "The policy failed to make a decision, because of an error, an output of the wrong type or one without a value, so something is denied or hidden that no rule denies. A warning for each point, with the number and an example; `check` makes the decisions about everything declared, `/status` reports those made since the generation began to serve. An error of `check` where no tool is shown at all.", "Correct the rule at the reported position, so that it has a value of the right type for every input; `catalogd explain BRANCH TOOL` shows the decision."},
		{ResultWithheld, "The policy redacts a JSON pointer in every result of a tool, and that can't be applied: the tool's results are texts that are not JSON, or its declared result requires the redacted value. Only `check` looks for it; a warning.", "Declare `result` and make the redacted value optional there, return JSON, use redact_patterns, or exclude the tool from the rule."},
		{SuspectMatch, "A policy compares only a part of a text, which lookalikes such as /opt/tools-evil match too: a part of input.target, or a URL or path anywhere, by `startswith` and similar functions, any part of the input by `contains`, or by a regular expression that is not anchored. A warning.", "Compare parts with `==` or `in`, URLs with `data.catalogd.lib.url.parts`, paths with `data.catalogd.lib.path.within`, and anchor regular expressions with ^ and $."},
		{MissingDefault, "A policy uses a rule or function that is true or has no value as if it could be false: compares it with false, or puts it into an object, an array or another rule. A warning.", "Write `default name := false` in the rule's package, or `not name`."},
		{SuspectNegation, "A rule negates with `not` an expression whose parts may be undefined, such as a missing argument: OPA evaluates the parts first, so the rule is undefined where its author means it to hold. An error if that allows something, as in `deny`; a warning if it may.", "Write `import future.keywords.not` below the module's package: `not` then includes the parts of the expression."},
		{UnconditionalAllow, "A rule that allows depends on nothing of the input: `allow := true`, a condition on constants or on data alone, or one that every input meets, such as `input.principal.name`. So it allows everything that no `deny` rule denies. Looked for in `connect`, `discover`, `list`, `call` and `release`; a warning.", "Write a condition on who calls or on what is called, such as `allow if \"dev\" in input.principal.groups`."},
		{UnknownName, "A policy or its data compares a tool, server, branch, tag, label or trust entry with a name that does not exist in the catalog. Only `check` looks for it; a warning.", "Fix the name, or remove the comparison."},
		{UnknownArgument, "A rule reads an argument that none of the tools has to which the rule can apply, so it is never true, or always. Only `check` looks for it; a warning.", "Correct the name; `catalogd list BRANCH TOOL` shows the arguments of a tool."},
		{ArgumentType, "A rule compares an argument with a value of another type, or passes it to a function that does not accept its type. Only `check` looks for it; a warning.", "Compare it with a value of its type."},
		{UnusedTrust, "Nothing in the catalog uses a trust entry. Only `check` looks for it; a warning.", "Fix the entry until `catalogd trust` shows it with its target, or remove it."},
		{NeverTrue, "A rule that allows something was true for no declared tool, branch and principal. Only `check` looks for it; a warning.", "Fix the rule, or remove it; `catalogd explain BRANCH TOOL -v` shows which rules are true for a call."},
		{EmptyBranch, "The policy hides all tools of a branch, so the branch lists none. A warning.", "Name the branch and its tools in policy/access/data.yaml; `catalogd explain BRANCH TOOL` shows which rules apply."},
		{UnseenTool, "No branch shows a tool: none selects it, or the policy hides it in those that do; where no tool is shown at all, that is one problem. Only `check` looks for it; a warning.", "Let a branch select it, name it in policy/access/data.yaml, or remove it; `catalogd explain BRANCH TOOL` shows which rules apply."},
		{UntrustedServer, "The policy does not trust the connection to a server, so its tools are hidden. A warning.", "Review the output of `catalogd trust --propose NAME`, and put it into policy/trust/data.yaml if it is intended."},
		{UntrustedBinding, "The policy does not trust a tool's command or address, so the tool is hidden. A warning.", "Review the output of `catalogd trust --propose NAME`, and put it into policy/trust/data.yaml if it is intended."},
		{AdoptionDenied, "The policy that is serving refuses this build.", "Read the reasons; change the build, or the data on which the serving policy decides."},
		{WorldWritable, "Other users of the computer can change a file that decides what may be reached or run, or add one to its directory.", "Remove their permission to write."},
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

// Markdown returns the content of docs/problems.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Problems\n\n" +
		"What `catalogd check` and a failed reload report, one line each: `file:line:col: code: path: message`. The codes are a\n" +
		"closed list. With an error the build fails, and the last good generation keeps serving; a warning changes nothing. All\n" +
		"problems are reported in one pass, sorted by position.\n\n" +
		"This file is generated from problem/docs.go (`go test ./problem -update`).\n")
	for _, group := range docs {
		fmt.Fprintf(&b, "\n## %s\n\n| code | what it means | what to do |\n|---|---|---|\n", group.title)
		for _, d := range group.codes {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Code, cell(d.Meaning), cell(d.Remedy))
		}
	}
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
