package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/registry"
)

// approve asks the caller to approve its own call, if the policy allows that (self) and the client supports
// elicitation. A client may answer without asking a person (docs/effects.md). If the caller doesn't decide,
// the answer is a handle; if another person has decided first, it is the outcome of that decision.
func (e *submission) approve(ctx context.Context, got intent.Answer, s intent.Submission, log *slog.Logger) intent.Answer {
	in := got.Intent
	approved, answered := e.ask(ctx, in)
	if !answered {
		return e.effector.Hand(got)
	}
	by := intent.Person{Name: in.Principal, Credential: in.Credential}
	var now intent.Answer
	var err error
	if approved {
		now, err = e.effector.ApproveSubmitted(ctx, in.ID, by, s)
	} else {
		now.Intent, err = e.effector.Refuse(ctx, in.ID, by, "")
	}
	var decided *intent.StateError
	switch {
	case err == nil:
		return now
	case errors.As(err, &decided):
		return e.effector.Attend(ctx, now.Intent, s)
	}
	log.Error(
		"can't record the decision of a caller on its own call",
		"intent",
		in.ID,
		"tool",
		in.Tool,
		"approved",
		approved,
		"error",
		err,
	)
	return e.effector.Hand(got)
}

// ask asks the caller whether it approves its call; answered is false if the caller may not decide, can't be
// asked or does not decide.
func (e *submission) ask(ctx context.Context, in intent.Intent) (approved, answered bool) {
	to := e.to.listener()
	q := registry.Question{Method: "elicitation/create", Params: approvalForm(in), Approval: true}
	if !in.Approval.Self || to.Ask == nil || !to.Able.Answers(q) {
		return false, false
	}
	reply := to.Ask(ctx, q)
	var answer struct {
		Action  string
		Content struct{ Approve bool }
	}
	if reply.Result == nil || json.Unmarshal(reply.Result, &answer) != nil {
		return false, false
	}
	return answer.Action == "accept" && answer.Content.Approve, answer.Action == "accept" || answer.Action == "decline"
}

// approvalForm returns the params of an elicitation that shows a call and asks for its approval.
func approvalForm(in intent.Intent) json.RawMessage {
	message := fmt.Sprintf("May %s be called with these arguments?\n%s", in.Tool, in.Arguments)
	if r := in.Approval.Reason; r != "" {
		message += "\n" + r
	}
	form, err := json.Marshal(map[string]any{
		"mode":    "form",
		"message": message,
		"requestedSchema": map[string]any{
			"type":       "object",
			"properties": map[string]any{"approve": map[string]any{"type": "boolean", "title": "Approve this call"}},
			"required":   []string{"approve"},
		},
	})
	if err != nil {
		panic("invoke: a form of strings always encodes: " + err.Error())
	}
	return form
}
