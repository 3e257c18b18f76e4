package intent

// Action is something that a person may do with an intent.
type Action string

// The actions, each a method of Effector.
const (
	ToApprove Action = "approve"
	ToRefuse  Action = "refuse"
	ToCancel  Action = "cancel"
	ToRetry   Action = "retry"
	ToResolve Action = "resolve"
)

// May returns what the person may do with an intent in its present state; an empty slice if nothing.
func (p Person) May(in Intent) []Action {
	may := []Action{}
	if !p.Sees(in) {
		return may
	}
	waits := in.State == AwaitingApproval
	approves := in.Approval != nil && p.mayApprove(in) == nil
	if waits && approves {
		may = append(may, ToApprove)
	}
	if waits && (approves || p.Admin) {
		may = append(may, ToRefuse)
	}
	if (p.owns(in) || p.Admin) && !in.State.Ended() && !in.State.Begun() && in.Attempts == 0 {
		may = append(may, ToCancel)
	}
	if p.Admin && (in.State == Failed || in.State == Unknown) {
		may = append(may, ToRetry)
	}
	if p.Admin && in.State == Unknown {
		may = append(may, ToResolve)
	}
	return may
}
