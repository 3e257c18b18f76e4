package daemon

import (
	"fmt"
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/generation"
	"github.com/catalogd/catalogd/internal/lockfile"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/problem"
)

// Status is the state of a daemon, for /status and `catalogd status`.
type Status struct {
	// Version is the version of catalogd.
	Version string `json:"version"`
	// Healthy is false while the newest files are not served, in part or in whole: the last good generation
	// serves, and Failed, Build, Undecided or Tokens has the reason. It is also false while calls with a side
	// effect are refused (Intents).
	Healthy bool `json:"healthy"`
	// Generation is the serving generation.
	Generation GenerationStatus `json:"generation"`
	// Build is the running build, or those that don't end; nil if there is none. A stuck build is not
	// healthy.
	Build *BuildStatus `json:"build,omitempty"`
	// Undecided are the questions that the policy did not answer in time: their subjects are left out, which
	// is not healthy, and they are retried.
	Undecided []generation.Undecided `json:"undecided,omitempty"`
	// Overdue are policy evaluations that timed out and still run.
	Overdue []decision.Overdue `json:"overdue,omitempty"`
	// Failed is the last refused candidate, until one is adopted.
	Failed *FailedStatus `json:"failed,omitempty"`
	// Servers are the upstream servers of the serving generation, by name.
	Servers []ServerStatus `json:"servers"`
	// MissingSecrets are the secrets of trusted servers and tools that this process can't read now: calls that
	// need one fail.
	MissingSecrets []generation.Secret `json:"missing_secrets,omitempty"`
	// Warnings are those of the serving generation.
	Warnings problem.List `json:"warnings"`
	// Tokens is nil if the daemon has no tokens.
	Tokens *TokensStatus `json:"tokens,omitempty"`
	// Intents is nil if there is no intent store.
	Intents *EffectsStatus `json:"intents,omitempty"`
	// DecisionLog is nil if decisions are not logged.
	DecisionLog *DecisionLogStatus `json:"decision_log,omitempty"`
	// Worker is the process that compiles catalogs; nil if none has been started.
	Worker *WorkerStatus `json:"worker,omitempty"`
	// Checker describes the processes that check calls with CUE; nil if this process evaluates CUE itself.
	Checker *CheckerStatus `json:"checker,omitempty"`
	// JQ describes the processes that run jq programs; nil if this process runs them itself.
	JQ *JQStatus `json:"jq,omitempty"`
}

// Brief is what /status returns to bearers of tokens without admin rights.
type Brief struct {
	// Version is the version of catalogd.
	Version string `json:"version"`
	// Healthy is as in Status.
	Healthy bool `json:"healthy"`
	// Generation is the serving generation.
	Generation BriefGeneration `json:"generation"`
	// Restricted says that an admin sees more.
	Restricted bool `json:"restricted"`
}

// BriefGeneration is the part of a GenerationStatus that doesn't describe its content.
type BriefGeneration struct {
	// ID is the id of the generation.
	ID string `json:"id"`
	// Since is when it began to serve.
	Since time.Time `json:"since"`
}

// BriefOf returns the Brief of a Status.
func BriefOf(s Status) Brief {
	return Brief{s.Version, s.Healthy, BriefGeneration{s.Generation.ID, s.Generation.Since}, true}
}

// BuildStatus describes the running build, and the abandoned ones.
type BuildStatus struct {
	// Since is when the build began, Step its current step, StepSince when that began; unset if none runs.
	Since     *time.Time `json:"since,omitempty"`
	Step      string     `json:"step,omitempty"`
	StepSince *time.Time `json:"step_since,omitempty"`
	// Stuck means that it has run for more than 30 s.
	Stuck bool `json:"stuck"`
	// Abandoned counts builds that were superseded or cancelled, and have not ended.
	Abandoned int `json:"abandoned"`
}

// Degraded returns the reason why a Status is not healthy.
func (s Status) Degraded() string {
	switch b := s.Build; {
	case b != nil && b.Stuck:
		return fmt.Sprintf("a build has not ended since %s (%s)", b.Since.UTC().Format(time.RFC3339), b.Step)
	case b != nil && b.Abandoned > 0:
		return fmt.Sprintf("builds that were broken off have not ended: %d", b.Abandoned)
	case s.Failed != nil:
		return "the newest files are refused (" + s.Failed.Reason + ")"
	case len(s.Undecided) > 0:
		return fmt.Sprintf("the policy has not decided in time: %d questions, the first about %s", len(s.Undecided), s.Undecided[0])
	case s.IntentsFailed():
		return "calls with a side effect are refused (" + s.Intents.Failed + ")"
	}
	return "the file of tokens is refused"
}

// IntentsFailed reports whether the only fault is that calls with a side effect are refused, because their
// intents can't be written.
func (s Status) IntentsFailed() bool {
	return s.Intents != nil && s.Intents.Failed != "" && (s.Build == nil || !s.Build.Stuck && s.Build.Abandoned == 0) && s.Failed == nil &&
		len(s.Undecided) == 0 && (s.Tokens == nil || s.Tokens.Failed == nil)
}

// TokensStatus describes the token file.
type TokensStatus struct {
	// Good counts the tokens that have not expired.
	Good int `json:"good"`
	// Failed is why the current file is refused; the last good content remains in effect.
	Failed *token.Failure `json:"failed,omitempty"`
}

// DecisionLogStatus counts the events of this run by their outcome.
type DecisionLogStatus struct {
	// Written counts written events, Dropped those that found the queue full, Failed those that could not be
	// written in time, Suppressed the refused attempts beyond the rate of their principal.
	Written uint64 `json:"written"`
	Dropped uint64 `json:"dropped"`
	Failed  uint64 `json:"failed"`
	// Suppressed events are not lost by a fault: so many attempts would add no information.
	Suppressed uint64 `json:"suppressed"`
	// Waiting is the length of the queue.
	Waiting int `json:"waiting"`
}

// CheckerStatus describes the processes that check with CUE what the schema of a tool can't express. The
// first call of such a tool starts them.
type CheckerStatus struct {
	// PIDs are those of the running processes.
	PIDs []int `json:"pids"`
	// Sandbox is as in WorkerStatus; null before the first process.
	Sandbox []string `json:"sandbox"`
	// Packages counts the CUE packages whose sources are kept for such tools.
	Packages int `json:"packages"`
	// Checks counts checks that were decided, Timeouts those that took too long, Kills the processes that
	// were killed for a check, Deaths those that ended by themselves during one, which failed only that call.
	Checks   int64 `json:"checks"`
	Timeouts int64 `json:"timeouts"`
	Kills    int64 `json:"kills"`
	Deaths   int64 `json:"deaths"`
}

// JQStatus describes the processes that run jq programs. A generation with a tool that has one starts the
// first.
type JQStatus struct {
	// PIDs and Sandbox are as in CheckerStatus.
	PIDs    []int    `json:"pids"`
	Sandbox []string `json:"sandbox"`
	// Runs counts programs that ended, whatever their output or error, Timeouts those that took too long,
	// Kills the processes that were killed for a run, Deaths those that ended by themselves during one, as
	// for want of memory, which failed only that run.
	Runs     int64 `json:"runs"`
	Timeouts int64 `json:"timeouts"`
	Kills    int64 `json:"kills"`
	Deaths   int64 `json:"deaths"`
}

// WorkerStatus describes the process that compiles catalogs.
type WorkerStatus struct {
	// PID is omitted while none runs.
	PID int `json:"pid,omitempty"`
	// Sandbox names the mechanisms that deny it files, network and programs (seccomp, landlock) and limit its
	// memory (rlimit_data); empty if there are none.
	Sandbox []string `json:"sandbox"`
}

// GenerationStatus describes the serving generation.
type GenerationStatus struct {
	// ID is the id of the generation.
	ID string `json:"id"`
	// Since is when it began to serve.
	Since time.Time `json:"since"`
	// Policy is the digest of its policy.
	Policy string `json:"policy"`
	// Tools counts the tools that can be offered.
	Tools int `json:"tools"`
	// Branches counts the declared branches.
	Branches int `json:"branches"`
	// Hidden counts tools that can't be offered in any branch, such as those of untrusted servers.
	Hidden int `json:"hidden"`
	// Unseen counts the other tools that no branch shows to the operator.
	Unseen int `json:"unseen"`
	// HiddenTools says why tools are Hidden, the most frequent reason first; omitted if none is hidden.
	HiddenTools []generation.HiddenTools `json:"hidden_tools,omitempty"`
	// Adopted says how it was adopted: "bootstrap" at a first start or one with --bootstrap, "adopted", or
	// "resumed" if it had been adopted before the start.
	Adopted string `json:"adopted"`
}

// FailedStatus describes a refused candidate.
type FailedStatus struct {
	// Digest is that of the files.
	Digest string `json:"digest"`
	// At is when they were refused.
	At time.Time `json:"at"`
	// Reason is "problems", "adoption_denied" or "source".
	Reason string `json:"reason"`
	// Problems are the problems of the files.
	Problems problem.List `json:"problems"`
	// Candidate describes the candidate, if it could be built.
	Candidate *CandidateStatus `json:"candidate,omitempty"`
}

// CandidateStatus is what a refused candidate would have changed.
type CandidateStatus struct {
	// Tools counts the tools of the catalog.
	Tools int `json:"tools"`
	// Branches counts the declared branches.
	Branches int `json:"branches"`
	// Commit is the commit of the files; absent where they are in no git repository.
	Commit decision.Commit `json:"commit,omitzero"`
	// Changes are the differences from the serving generation.
	Changes decision.Changes `json:"changes"`
	// Tests is what came of the policy's tests.
	Tests decision.TestSummary `json:"tests"`
}

// inspected compares the candidate with the serving generation, which may be nil.
func inspected(serving, candidate *generation.Generation, tests decision.TestSummary) *CandidateStatus {
	if serving == nil {
		return nil // a start is refused: the problems are complete
	}
	return &CandidateStatus{
		Tools: len(candidate.Summary().Tools), Branches: len(candidate.Summary().Branches),
		Commit: candidate.Summary().Commit, Changes: generation.Changes(serving, candidate), Tests: tests,
	}
}

// ServerStatus describes one upstream server.
type ServerStatus struct {
	// Name is the server's name in the catalog.
	Name string `json:"name"`
	// Trusted says that the connect decision allows the server. It is not requested if State is "missing".
	Trusted bool `json:"trusted"`
	// Trust is the name of the trust entry that allows it.
	Trust string `json:"trust,omitempty"`
	// Reasons say why the server is not trusted.
	Reasons []string `json:"reasons,omitempty"`
	// State, Since and Error are those of the most relevant connection: a failing one, if there is one. State is
	// "untrusted" for a server that is not trusted, and "missing" for one whose command can't be run on this
	// machine, of which Error says why.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitempty"`
	// Connections has more than one element if the server isolates by branch, and while calls drain on the
	// old connection of a server that a reload has changed.
	Connections []upstream.Status `json:"connections,omitempty"`
	// Counts is omitted if the server is not trusted.
	Counts *upstream.Tally `json:"counts,omitempty"`
	// Quarantined are the tools that the policy doesn't allow, Degraded the locked ones that can't be
	// offered.
	Quarantined []generation.Quarantined `json:"quarantined,omitempty"`
	Degraded    []lockfile.Degraded      `json:"degraded,omitempty"`
	// Forward describes the server's passthrough items; nil if it forwards nothing.
	Forward *generation.ForwardStatus `json:"forward,omitempty"`
	// Pos is where the server is declared.
	Pos problem.Position `json:"pos"`
}

// Outcome is the outcome of a reload.
type Outcome struct {
	// Result is "adopted", "unchanged", "refused", or "superseded" (cancelled because of newer files).
	Result string `json:"result"`
	// Generation is the id of the generation that serves then.
	Generation string `json:"generation"`
	// Changed names the branches whose visible set changed.
	Changed []string `json:"changed"`
	// Problems are the problems of the files, warnings among them.
	Problems problem.List `json:"problems"`
	// Duration is how long the reload took, in nanoseconds.
	Duration time.Duration `json:"duration_ns"`
}
