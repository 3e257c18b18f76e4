package catalogd

import (
	"github.com/catalogd/catalogd/internal/diff"
	"github.com/catalogd/catalogd/internal/egress"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/internal/passthrough"
	"github.com/catalogd/catalogd/internal/upstream"
)

// The values of Access.
const (
	// AccessCallable means that the tool is listed and that every call with valid arguments runs.
	AccessCallable = generation.Callable
	// AccessDepends means that the tool is listed, and that the call or release decision depends on the
	// arguments, the intent or the time.
	AccessDepends = generation.Depends
	// AccessApproval means that the tool is listed, and that each call must be approved before it runs.
	AccessApproval = generation.Approval
	// AccessRefused means that the tool is listed, and that the release decision refuses every intent.
	AccessRefused = generation.Refused
	// AccessHidden means that the tool is neither listed nor callable.
	AccessHidden = generation.Hidden
)

// The values of ChangeClass.
const (
	// ChangeWidening means that something is newly allowed, granted or exempt from a check.
	ChangeWidening = diff.Widening
	// ChangeUnclassified means that the effect is unknown. It counts as widening.
	ChangeUnclassified = diff.Unclassified
	// ChangeNarrowing means that something is no longer allowed or granted, or is checked more.
	ChangeNarrowing = diff.Narrowing
	// ChangeNeutral means that no grant depends on the change.
	ChangeNeutral = diff.Neutral
)

// The values of ItemKind.
const (
	ItemResource = passthrough.Resource
	ItemTemplate = passthrough.Template
	ItemPrompt   = passthrough.Prompt
)

// The values of ConnectionState.
const (
	// ConnectionIdle means that nothing has been called yet.
	ConnectionIdle = upstream.Idle
	// ConnectionConnecting means that a process starts or a handshake runs.
	ConnectionConnecting = upstream.Connecting
	// ConnectionReady means that calls are answered.
	ConnectionReady = upstream.Ready
	// ConnectionFailed means that the last attempt failed or that the connection was lost. The next call
	// tries again.
	ConnectionFailed = upstream.Failed
	// ConnectionDraining means that no generation uses the server any more, and that its last calls finish.
	ConnectionDraining = upstream.Draining
)

// The values of VariableOrigin.
const (
	// VariableFromBase means one of the variables that every child gets.
	VariableFromBase = egress.FromBase
	// VariableFromDaemon means a variable of catalogd's own environment that the trust entry names.
	VariableFromDaemon = egress.FromDaemon
	// VariableFromDeclaration means a variable that the catalog declares.
	VariableFromDeclaration = egress.FromDeclaration
	// VariableFromEntry means a variable with a fixed value in the trust entry.
	VariableFromEntry = egress.FromEntry
)

// The values of LockChangeKind.
const (
	LockIdentical = lockfile.Identical
	// LockDescriptionOnly means that only the title, description, icons, _meta or annotations other than
	// hints differ.
	LockDescriptionOnly = lockfile.DescriptionOnly
	// LockRenamed means that a tool of the same shape has another name.
	LockRenamed          = lockfile.Renamed
	LockNew              = lockfile.New
	LockRemoved          = lockfile.Removed
	LockArgumentsWidened = lockfile.ArgumentsWidened
	LockResultChanged    = lockfile.ResultChanged
	// LockArgumentsNarrowed means that a call that was accepted before may be refused, or that the schemas
	// can't be compared.
	LockArgumentsNarrowed = lockfile.ArgumentsNarrowed
	// LockAnnotationLowered means that a hint promises less than the locked one.
	LockAnnotationLowered = lockfile.AnnotationLowered
	// LockDefinitionUnusable means that the definition is a duplicate or can't be read.
	LockDefinitionUnusable = lockfile.DefinitionUnusable
)

// The values of Durability.
const (
	// DurabilityPower means that the record of an intent survives a loss of power.
	DurabilityPower = intent.Power
	// DurabilityProcess means that it survives the end of the process, but may not survive a loss of power.
	DurabilityProcess = intent.Process
)

// The values of IntentState, in the order of an intent's life. docs/effects.md explains them.
const (
	IntentStaged           = intent.Staged
	IntentAwaitingApproval = intent.AwaitingApproval
	IntentReleased         = intent.Released
	IntentAttempted        = intent.Attempted
	IntentAwaitingInput    = intent.AwaitingInput
	IntentSucceeded        = intent.Succeeded
	IntentFailed           = intent.Failed
	IntentUnknown          = intent.Unknown
	IntentRefused          = intent.Refused
	IntentCancelled        = intent.Cancelled
	IntentExpired          = intent.Expired
)

// The values of IntentAction.
const (
	IntentActionApprove = intent.ToApprove
	IntentActionRefuse  = intent.ToRefuse
	IntentActionCancel  = intent.ToCancel
	IntentActionRetry   = intent.ToRetry
	IntentActionResolve = intent.ToResolve
)
