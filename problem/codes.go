package problem

// Code is the code of one kind of problem. The list is closed: Docs has every code.
type Code string

// Doc documents a code, for docs/problems.md and `catalogd check`.
type Doc struct {
	Code    Code
	Meaning string
	Remedy  string
}

// The codes, in the order of a build. Docs has their meanings and remedies.
const (
	// Files.
	FileTooLarge    Code = "file_too_large"
	CatalogTooLarge Code = "catalog_too_large"
	TooManyFiles    Code = "too_many_files"
	TooManyTools    Code = "too_many_tools"
	TooManyFields   Code = "too_many_fields"
	NotUTF8         Code = "not_utf8"
	BadSymlink      Code = "bad_symlink"
	NotRegular      Code = "not_regular"
	Unreadable      Code = "unreadable"
	NoCatalog       Code = "no_catalog"
	BadBuildFile    Code = "bad_build_file"
	LoadTimeout     Code = "load_timeout"
	LoadMemory      Code = "load_memory"
	LoadFailed      Code = "load_failed"

	// CUE.
	CUESyntax          Code = "cue_syntax"
	CUEConflict        Code = "cue_conflict"
	CUEIncomplete      Code = "cue_incomplete"
	CUECycle           Code = "cue_cycle"
	CUEReference       Code = "cue_reference"
	CUEValue           Code = "cue_value"
	CUEImport          Code = "cue_import"
	CUEEmbed           Code = "cue_embed"
	CUETag             Code = "cue_tag"
	CUEModule          Code = "cue_module"
	UnknownField       Code = "unknown_field"
	MissingField       Code = "missing_field"
	SchemaDiffers      Code = "schema_differs"
	NotCatalogPackage  Code = "not_catalog_package"
	BadName            Code = "bad_name"
	NameConfusable     Code = "name_confusable"
	DuplicateName      Code = "duplicate_name"
	UnsupportedConstr  Code = "unsupported_constraint"
	BadRegex           Code = "bad_regex"
	StrictOptional     Code = "exact_optional"
	BadDefault         Code = "bad_default"
	BadAttribute       Code = "bad_attribute"
	BadText            Code = "bad_text"
	LossyContract      Code = "lossy_contract"
	UnknownServer      Code = "unknown_server"
	UnknownTool        Code = "unknown_tool"
	EmptySelection     Code = "empty_selection"
	ContradictoryField Code = "contradictory_field"
	BadNarrowing       Code = "bad_narrowing"

	// Bindings.
	BadBinding       Code = "bad_binding"
	MissingCommand   Code = "missing_command"
	ReservedName     Code = "reserved_name"
	BadPlaceholder   Code = "bad_placeholder"
	BadJQ            Code = "bad_jq"
	BadSecret        Code = "bad_secret"
	LiteralSecret    Code = "literal_secret"
	BadExample       Code = "bad_example"
	StoredSecret     Code = "stored_secret"
	SuspectEffect    Code = "suspect_effect"
	UnusedEffectNote Code = "unused_effect_note"

	// Go functions.
	UnknownFunction  Code = "unknown_function"
	FunctionMismatch Code = "function_mismatch"

	// Upstream servers.
	BadLock          Code = "bad_lock"
	NotLocked        Code = "not_locked"
	StaleLock        Code = "stale_lock"
	BadDefinition    Code = "bad_definition"
	Quarantined      Code = "quarantined"
	UpstreamMismatch Code = "upstream_mismatch"

	// Policy.
	NoPolicy           Code = "no_policy"
	LibraryDiffers     Code = "library_differs"
	RegoSyntax         Code = "rego_syntax"
	RegoCompile        Code = "rego_compile"
	RegoBuiltin        Code = "rego_builtin"
	PolicyPoint        Code = "policy_point"
	PolicyData         Code = "policy_data"
	PolicyTimeout      Code = "policy_timeout"
	PolicyFailed       Code = "policy_failed"
	ResultWithheld     Code = "result_withheld"
	SuspectMatch       Code = "suspect_match"
	MissingDefault     Code = "missing_default"
	SuspectNegation    Code = "suspect_negation"
	UnconditionalAllow Code = "unconditional_allow"
	UnknownName        Code = "unknown_name"
	UnknownArgument    Code = "unknown_argument"
	ArgumentType       Code = "argument_type"
	UnusedTrust        Code = "unused_trust"
	NeverTrue          Code = "never_true"
	EmptyBranch        Code = "empty_branch"
	UnseenTool         Code = "unseen_tool"
	UntrustedServer    Code = "untrusted_server"
	UntrustedBinding   Code = "untrusted_binding"
	AdoptionDenied     Code = "adoption_denied"
	WorldWritable      Code = "world_writable"
)
