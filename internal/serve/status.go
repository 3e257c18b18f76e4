package serve

import (
	"time"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/internal/lock"
	"github.com/catalogd/catalogd/internal/token"
	"github.com/catalogd/catalogd/internal/upstream"
	"github.com/catalogd/catalogd/problem"
)

// Status is what /status and `catalogd status` show.
type Status struct {
	Version string `json:"version"`
	// Healthy is false while the newest files are not what is served: last-good serves, and Failed or Tokens says why.
	Healthy    bool             `json:"healthy"`
	Generation GenerationStatus `json:"generation"`
	// Failed is the last candidate that was refused, until one succeeds.
	Failed  *FailedStatus  `json:"failed,omitempty"`
	Servers []ServerStatus `json:"servers"`
	// Warnings are the serving generation's.
	Warnings problem.List `json:"warnings"`
	// Tokens is nil where there are none.
	Tokens *TokensStatus `json:"tokens,omitempty"`
	// DecisionLog is nil where decisions are not logged.
	DecisionLog *DecisionLogStatus `json:"decision_log,omitempty"`
	// Worker is the process that compiles catalogs; nil where none has been started.
	Worker *WorkerStatus `json:"worker,omitempty"`
	// Checker is the processes that check calls with CUE; nil where CUE is evaluated in this process.
	Checker *CheckerStatus `json:"checker,omitempty"`
}

// Brief is what /status tells to bearers of tokens that are no admin's.
type Brief struct {
	Version    string          `json:"version"`
	Healthy    bool            `json:"healthy"`
	Generation BriefGeneration `json:"generation"`
	// Restricted says that there is more, for an admin.
	Restricted bool `json:"restricted"`
}

// BriefGeneration is a GenerationStatus without what it is made of.
type BriefGeneration struct {
	ID    string    `json:"id"`
	Since time.Time `json:"since"`
}

func (s Status) brief() Brief {
	return Brief{s.Version, s.Healthy, BriefGeneration{s.Generation.ID, s.Generation.Since}, true}
}

// TokensStatus describes the file of tokens.
type TokensStatus struct {
	// Good counts the tokens that have not expired.
	Good int `json:"good"`
	// Failed is why the file as it is now is refused; the last good one goes on.
	Failed *token.Failure `json:"failed,omitempty"`
}

// DecisionLogStatus counts what has become of the events of this run.
type DecisionLogStatus struct {
	// Written counts events that arrived, Dropped those that found the queue full, Failed those that could not be written in
	// time; Waiting is how many are in the queue.
	Written uint64 `json:"written"`
	Dropped uint64 `json:"dropped"`
	Failed  uint64 `json:"failed"`
	Waiting int    `json:"waiting"`
}

// CheckerStatus describes the processes that check with CUE what the schema of a tool can't say. They are started by the
// first call of such a tool.
type CheckerStatus struct {
	// PIDs are those of the processes that run.
	PIDs []int `json:"pids"`
	// Sandbox is as in WorkerStatus; null before the first process.
	Sandbox []string `json:"sandbox"`
	// Packages counts the CUE packages whose sources are kept for such tools.
	Packages int `json:"packages"`
	// Checks counts calls that were decided, Timeouts those that took too long, Kills the processes that were ended for a
	// call, Deaths those that ended by themselves during one, by which only that call failed.
	Checks   int64 `json:"checks"`
	Timeouts int64 `json:"timeouts"`
	Kills    int64 `json:"kills"`
	Deaths   int64 `json:"deaths"`
}

// WorkerStatus describes the process that compiles catalogs.
type WorkerStatus struct {
	// PID is left out while none runs.
	PID int `json:"pid,omitempty"`
	// Sandbox names what keeps it from files, network and programs (seccomp, landlock) and holds its memory (rlimit_data);
	// empty where only its code does.
	Sandbox []string `json:"sandbox"`
}

// GenerationStatus describes the generation that serves.
type GenerationStatus struct {
	ID       string    `json:"id"`
	Since    time.Time `json:"since"`
	Policy   string    `json:"policy"`
	Tools    int       `json:"tools"`
	Branches int       `json:"branches"`
	// Hidden counts tools that no branch can be offered, such as those of servers that are not trusted.
	Hidden int `json:"hidden"`
	// Adopted says how it came to serve: "bootstrap" or "adopted".
	Adopted string `json:"adopted"`
}

// FailedStatus describes a candidate that was refused.
type FailedStatus struct {
	// Digest names the files' content.
	Digest string    `json:"digest"`
	At     time.Time `json:"at"`
	// Reason is "problems", "adoption_denied" or "source".
	Reason   string       `json:"reason"`
	Problems problem.List `json:"problems"`
	// Candidate is what was refused, where it could be built.
	Candidate *CandidateStatus `json:"candidate,omitempty"`
}

// CandidateStatus is what a candidate that was not adopted would have changed.
type CandidateStatus struct {
	Tools    int                  `json:"tools"`
	Branches int                  `json:"branches"`
	Commit   decision.Commit      `json:"commit,omitzero"`
	Changes  decision.Changes     `json:"changes"`
	Tests    decision.TestSummary `json:"tests"`
}

// inspected is the candidate beside what serves, which may be nothing.
func inspected(serving, candidate *Generation, tests decision.TestSummary) *CandidateStatus {
	if serving == nil {
		return nil // a start is refused: the problems say it all
	}
	return &CandidateStatus{
		Tools: len(candidate.summary.Tools), Branches: len(candidate.summary.Branches),
		Commit: candidate.summary.Commit, Changes: changes(serving, candidate), Tests: tests,
	}
}

// ServerStatus describes one upstream server.
type ServerStatus struct {
	Name    string   `json:"name"`
	Trusted bool     `json:"trusted"`
	Trust   string   `json:"trust,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	// State, Since and Error are those of the connection that says most: one that fails, if there is one.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitempty"`
	// Connections has more than one element where the server keeps branches apart, and while a reload that changed the
	// server lets the last calls at the old one finish.
	Connections []upstream.Status `json:"connections,omitempty"`
	// Counts is left out of a server that may not be reached.
	Counts *upstream.Tally `json:"counts,omitempty"`
	// Quarantined are the tools that the policy doesn't let be used, Degraded the locked ones that can't be offered.
	Quarantined []Quarantined   `json:"quarantined,omitempty"`
	Degraded    []lock.Degraded `json:"degraded,omitempty"`
	// Forward is what the server passes on beside its tools; nil where it declares nothing.
	Forward *ForwardStatus   `json:"forward,omitempty"`
	Pos     problem.Position `json:"pos"`
}

// Outcome is how a reload ended.
type Outcome struct {
	// Result is "adopted", "unchanged" or "refused".
	Result     string `json:"result"`
	Generation string `json:"generation"`
	// Changed names the branches whose visible set changed.
	Changed  []string      `json:"changed"`
	Problems problem.List  `json:"problems"`
	Duration time.Duration `json:"duration_ns"`
}
