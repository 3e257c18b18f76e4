package catalogd

import (
	"github.com/catalogd/catalogd/internal/daemon"
	"github.com/catalogd/catalogd/internal/diff"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/internal/mcpserver"
	"github.com/catalogd/catalogd/internal/passthrough"
	"github.com/catalogd/catalogd/internal/propose"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/internal/upstream"
)

// The types below are plain data in the signatures of this package. `go doc` of the type behind a name lists
// its fields. Types that encode to JSON have the form that `catalogd --format json` prints. String types
// (Access, ChangeClass, ...) are closed lists; constants.go has their values.

// Errors that a caller may want to tell apart.
type (
	// RefusedError says why a catalog isn't fit to serve: it has every problem.
	RefusedError = daemon.RefusedError
	// NotAskedError says why a decision point is not asked about a call, such as arguments that are not
	// valid.
	NotAskedError = generation.NotAskedError
)

// ServingLimits bound what the clients of one branch, and one client among them, can use (Config.Serving).
type ServingLimits = mcpserver.Limits

// The state of a catalog: Catalog.Status and Catalog.Reload.
type (
	// Status says what is served since when, whether that is the newest files, and if not, why.
	Status = daemon.Status
	// GenerationStatus describes the generation that is served: its digest, its policy's, and how much it
	// holds.
	GenerationStatus = daemon.GenerationStatus
	// BuildStatus describes the running build, and builds that were abandoned and have not ended.
	BuildStatus = daemon.BuildStatus
	// FailedStatus is the last candidate that was refused, with its problems.
	FailedStatus = daemon.FailedStatus
	// CandidateStatus is what a candidate that was not adopted would have changed.
	CandidateStatus = daemon.CandidateStatus
	// Undecided is a question that the policy did not answer before its deadline; its subject is left out
	// meanwhile.
	Undecided = generation.Undecided
	// HiddenTools are tools that can't be offered to anyone, for the same reason.
	HiddenTools = generation.HiddenTools
	// ServerStatus describes one upstream server: trust, connections, quarantined tools.
	ServerStatus = daemon.ServerStatus
	// ConnectionStatus is one connection to an upstream server, with its circuit breaker and its queue.
	ConnectionStatus = upstream.Status
	// ConnectionState is the state of a connection, such as "ready" or "failed".
	ConnectionState = upstream.State
	// CallCounts count the calls of an upstream server since the catalog was opened.
	CallCounts = upstream.Tally
	// QuarantinedTool is a tool of a server that the discover decision does not allow.
	QuarantinedTool = generation.Quarantined
	// DegradedTool is a locked tool that can't be offered, and why.
	DegradedTool = lockfile.Degraded
	// PassthroughStatus counts the resources, templates and prompts that are passed through from a server.
	PassthroughStatus = generation.ForwardStatus
	// WithheldItem is a resource, template or prompt that is not shown, and why.
	WithheldItem = passthrough.Withheld
	// ItemKind is "resource", "template" or "prompt".
	ItemKind = passthrough.Kind
	// TokensStatus describes the file of tokens.
	TokensStatus = daemon.TokensStatus
	// TokensFailure is why the file of tokens as it is now is refused.
	TokensFailure = token.Failure
	// IntentsStatus describes the store of intents: where it is, and how many are in each state.
	IntentsStatus = daemon.EffectsStatus
	// Durability is what a recorded intent survives: "power" or "process".
	Durability = intent.Durability
	// DecisionLogStatus counts the events of the decision log.
	DecisionLogStatus = daemon.DecisionLogStatus
	// WorkerStatus describes the process that compiles catalogs.
	WorkerStatus = daemon.WorkerStatus
	// CheckerStatus describes the processes that check arguments with CUE.
	CheckerStatus = daemon.CheckerStatus
	// JQStatus describes the processes that run jq programs.
	JQStatus = daemon.JQStatus
	// Outcome is how a reload ended.
	Outcome = daemon.Outcome
)

// What a branch offers, and why: Branch.Offer, Explain, Matrix, and CheckFor.
type (
	// Offer is a branch's tools in the form of one model provider.
	Offer = generation.Offers
	// Checked is the result of CheckFor.
	Checked = generation.Checked
	// EffectNote is the reason why a tool that sends or runs something only reads.
	EffectNote = generation.EffectNote
	// SchemaLoss is one constraint that a tool's JSON Schema does not state; calls are held to it all the
	// same.
	SchemaLoss = generation.Lost
	// UnofferedTool is a tool that a dialect, or its strict mode, can't express, with every reason.
	UnofferedTool = generation.DialectIssue
	// UpstreamTool is a tool of an upstream server, by its names in the catalog and at the server.
	UpstreamTool = generation.Remote
	// Explanation is every decision about one call through a branch, with the rules that answered.
	Explanation = generation.Explanation
	// Brief is an Explanation in five lines.
	Brief = generation.Brief
	// ExplainRequest is a call that is to be explained.
	ExplainRequest = generation.ExplainRequest
	// ExplainStep is one decision of an Explanation.
	ExplainStep = generation.Step
	// ExplainedBranch is what one of the branches above a conversation branch makes of a tool.
	ExplainedBranch = generation.ExplainedBranch
	// NarrowedTool is what a branch narrows of a tool, with the positions.
	NarrowedTool = generation.NarrowedTool
	// ArgumentViolation is one thing that is wrong with the arguments, with the position of the declaration
	// it violates.
	ArgumentViolation = generation.Violated
	// LockStatus is what the lockfile has of a tool, and what the discover decision made of it.
	LockStatus = generation.Locked
	// Access is what a principal may do with a tool through a branch before there are arguments: "callable",
	// "depends", "approval", "refused" or "hidden".
	Access = generation.Access
	// AccessEntry is one cell of the access matrix: branch, tool, principal and Access.
	AccessEntry = generation.AccessCell
	// InputRequest names the call about which a decision point would be asked.
	InputRequest = generation.InputRequest
)

// Connect decisions and trust entries: Catalog.ConnectDecisions, Secrets, ExplainConnect and Proposals.
type (
	// ConnectDecision is an upstream server or an outward binding, and whether the policy lets it be spawned
	// or dialled.
	ConnectDecision = generation.Reach
	// ServerProbe says whether a trusted HTTP server answers, and what its clock says.
	ServerProbe = generation.Probed
	// ToolProbe says whether a host that trusted http tools reach accepts connections.
	ToolProbe = generation.ProbedOrigin
	// ConnectExplanation is a ConnectDecision with the rules that answered.
	ConnectExplanation = generation.ReachExplanation
	// Secret is a secret that trusted servers and tools get, and whether it is there.
	Secret = generation.Secret
	// SecretUser is a server or tool that gets a secret.
	SecretUser = generation.SecretUser
	// Variable is one variable of a child's environment.
	Variable = egress.Variable
	// VariableOrigin says where a variable's value comes from.
	VariableOrigin = egress.Origin
	// Proposal is a trust entry that would allow connections which the policy denies.
	Proposal = generation.Proposal
	// ProposedEntry is the trust entry of a Proposal; its YAML method writes it.
	ProposedEntry = propose.Entry
	// ProposedField is one field of a ProposedEntry, with what it grants.
	ProposedField = propose.Field
	// ReplacedEntry is an entry of policy/trust/data.yaml that a Proposal replaces.
	ReplacedEntry = generation.Replaced
)

// Results of tests: TestDecisions and Catalog.TestExamples.
type (
	// DecisionResult is the result of one row of a table of decisions.
	DecisionResult = generation.DecisionResult
	// ExampleResult is the result of one example of a tool.
	ExampleResult = generation.ExampleResult
)

// The lockfile, and what servers offer beside it: Survey.
type (
	// SurveyResult is what the servers that discover their tools offer now, beside what is locked of them.
	SurveyResult = generation.Survey
	// SurveyedServer is one server of a SurveyResult.
	SurveyedServer = generation.Surveyed
	// ServerOffer is what a server offers at one time.
	ServerOffer = lockfile.Offer
	// ServerIdentity is the name and version that a server reports.
	ServerIdentity = lockfile.Identity
	// ToolDefinition is one tool as a server offers it.
	ToolDefinition = lockfile.Definition
	// Lockfile is the content of catalog.lock.json.
	Lockfile = lockfile.File
	// LockedServer is one server of a Lockfile.
	LockedServer = lockfile.Server
	// LockedTool is one tool of a LockedServer.
	LockedTool = lockfile.Tool
	// LockChange is the difference between a locked tool and the offered one.
	LockChange = lockfile.Change
	// LockChangeKind is the kind of a LockChange, such as "identical" or "removed".
	LockChangeKind = lockfile.Kind
)

// The difference between two states of a catalog: Diff.
type (
	// Difference is all that differs between two states of a catalog, and what that widens.
	Difference = diff.Difference
	// DiffSide is one of the two states.
	DiffSide = diff.Side
	// ChangeClass says what a change does to what is granted: "widening", "unclassified", "narrowing" or
	// "neutral".
	ChangeClass = diff.Class
	// Declaration is the name and position of a tool, server or branch that is new, gone or changed.
	Declaration = diff.Declared
	// ToolChange is a tool that both sides declare, differently.
	ToolChange = diff.ToolChange
	// FieldChange is one field that differs.
	FieldChange = diff.FieldChange
	// AccessChange is a principal's changed access to a tool through a branch.
	AccessChange = diff.AccessChange
	// TrustChange is a server or tool whose trust differs.
	TrustChange = diff.TrustChange
	// NotCompared is a server or tool whose command can't be run on this machine, so that it is not known whether it may
	// be granted something else than before.
	NotCompared = diff.NotCompared
	// PolicyChange is one difference between the policies: a rule, a value, a test or a file.
	PolicyChange = diff.Change
	// DecisionExample is a decision that a PolicyChange alone answers otherwise.
	DecisionExample = diff.Example
)
