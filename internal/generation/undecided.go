package generation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/problem"
)

// A policy that times out for one tool hides that tool only, and one that always times out must not delay a
// build by a deadline for each question: when one decision point exceeds maxUndecided tools and servers, or
// maxLost questions, the build is refused.
const (
	maxUndecided = 5
	maxLost      = 20
)

// Undecided is a question that the policy did not answer before the deadline. Its subject is left out, and
// the daemon asks again until it is decided.
type Undecided struct {
	// Point is the decision point that did not answer.
	Point decision.Point `json:"point"`
	// Kind is "tool" or "server"; Name is the tool's in the catalog, or the server's.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Branch is set for a list decision.
	Branch string `json:"branch,omitempty"`
	// Why is what happened.
	Why string `json:"why"`

	// Pos is where the tool or server is declared.
	Pos problem.Position `json:"pos"`
}

func (u Undecided) String() string {
	if u.Branch != "" {
		return fmt.Sprintf("%s %q in branch %q", u.Kind, u.Name, u.Branch)
	}
	return fmt.Sprintf("%s %q", u.Kind, u.Name)
}

// undecided collects the undecided questions of one build. It is safe for concurrent use; the zero value is
// ready to use.
type undecided struct {
	mu  sync.Mutex
	all []Undecided
}

// ask evaluates a question and records it if it times out; subject.Why is ignored. ok is false, and nothing
// is evaluated, if the point has exceeded its limit.
func (u *undecided) ask(ctx context.Context, subject Undecided, ask func() decision.Decision) (d decision.Decision, ok bool) {
	if u.spent(subject.Point) {
		return decision.Decision{Point: subject.Point, Code: decision.PolicyTimeout}, false
	}
	d = ask()
	if d.Code == decision.PolicyTimeout && ctx.Err() == nil {
		subject.Why = refusal(d)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.all = append(u.all, subject)
	}
	return d, true
}

// spent reports whether the point has exceeded its limit of timeouts.
func (u *undecided) spent(point decision.Point) bool {
	all, names := u.of(point), map[string]bool{}
	for _, one := range all {
		names[one.Kind+one.Name] = true
	}
	return len(names) > maxUndecided || len(all) > maxLost
}

func (u *undecided) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.all) > 0
}

func (u *undecided) of(point decision.Point) (all []Undecided) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, one := range u.all {
		if one.Point == point {
			all = append(all, one)
		}
	}
	return all
}

// list returns the undecided questions in the order of their declarations.
func (u *undecided) list() []Undecided {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.SortedFunc(slices.Values(u.all), func(x, y Undecided) int {
		return cmp.Or(cmp.Compare(x.Pos.File, y.Pos.File), cmp.Compare(x.Pos.Line, y.Pos.Line), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Branch, y.Branch))
	})
}

// problems returns them as errors, or as warnings if the build may be served without their subjects.
func (u *undecided) problems(tolerant bool) (l problem.List) {
	severity := problem.Error
	if tolerant {
		severity = problem.Warning
	}
	for _, one := range u.list() {
		if !u.spent(one.Point) {
			l = append(l, one.problem(severity))
		}
	}
	for _, point := range decision.Points() {
		if n := len(u.of(point)); u.spent(point) {
			l.Errorf(problem.PolicyTimeout, problem.Position{File: "policy"}, "data.catalogd."+string(point),
				"%d %s decisions ran into their deadline, the last one about %s: %s; no more were asked: make the rules that the point asks cheaper",
				n, point, u.of(point)[n-1], u.of(point)[n-1].Why)
		}
	}
	return l
}

func (u Undecided) problem(severity problem.Severity) problem.Problem {
	var l problem.List
	l.Errorf(problem.PolicyTimeout, u.Pos, u.Kind+"s."+u.Name,
		"the %s decision about %s is not made, and it is left out until it is: %s; make the rules that the point asks cheaper", u.Point, u, u.Why)
	l[0].Severity = severity
	return l[0]
}
