package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/catalogd/catalogd"
	"github.com/catalogd/catalogd/internal/httpapi"
	"github.com/catalogd/catalogd/internal/intent"
	"github.com/catalogd/catalogd/problem"
)

var intentColumns = []string{"ID", "AGE", "STATE", "BRANCH", "TOOL", "PRINCIPAL", "WAITS FOR"}

// intentPage prints a list.
func (e *env) intentPage(page httpapi.IntentPage) error {
	if e.json {
		return e.printJSON(page)
	}
	rows := [][]string{intentColumns}
	for _, in := range page.Intents {
		rows = append(rows, intentRow(in))
	}
	if err := e.table(rows); err != nil {
		return err
	}
	if page.Before != 0 {
		fmt.Fprintf(e.stderr, "there may be more: --before %d\n", page.Before)
	}
	return nil
}

func intentRow(in httpapi.ListedIntent) []string {
	return []string{in.ID, age(time.Since(in.Staged)), string(in.State), in.Branch, in.Tool, in.Principal, cmp.Or(waitsFor(in.Intent), "-")}
}

// age formats a duration in its largest unit.
func age(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", max(0, d/time.Second))
}

// waitsFor describes what has to happen next; "" if nothing does.
func waitsFor(in catalogd.Intent) string {
	switch in.State {
	case intent.AwaitingApproval:
		who := append([]string(nil), in.Approval.Groups...)
		for i, g := range who {
			who[i] = "group " + g
		}
		if in.Approval.Self {
			who = append(who, "its caller")
		}
		says := "approval by " + strings.Join(who, " or ")
		if in.Approval.Reason != "" {
			says += ": " + in.Approval.Reason
		}
		if !in.Expires.IsZero() {
			says += ", until " + in.Expires.Local().Format(time.RFC3339)
		}
		return says
	case intent.Staged, intent.Released:
		return "its turn"
	case intent.Attempted:
		return "its outcome"
	case intent.AwaitingInput:
		return "its caller's input"
	case intent.Unknown:
		return "a person to find out its outcome: resolve or retry"
	}
	return ""
}

// shownIntent prints everything about an intent.
func (e *env) shownIntent(s httpapi.ShownIntent) error {
	if e.json {
		return e.printJSON(s)
	}
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(e.stdout, "%-12s%s\n", name+":", problem.Printable(value))
		}
	}
	line("intent", s.ID)
	line("state", string(s.State))
	line("waits for", waitsFor(s.Intent))
	line("tool", s.Tool+" of branch "+s.Branch)
	line("principal", s.Principal)
	line("staged", s.Staged.Local().Format(time.RFC3339))
	if !s.Ended.IsZero() {
		line("ended", s.Ended.Local().Format(time.RFC3339))
	}
	line("attempts", fmt.Sprint(s.Attempts))
	line("key", s.Key)
	line("generation", short(s.Generation))
	if a := s.Approval; a != nil && a.By != "" {
		line("approved", fmt.Sprintf("by %s at %s", a.By, a.At.Local().Format(time.RFC3339)))
	}
	may := make([]string, len(s.May))
	for i, action := range s.May {
		may[i] = string(action)
	}
	line("you may", strings.Join(may, ", "))
	fmt.Fprintln(e.stdout, "\nhistory:")
	for _, step := range s.History {
		text := step.At.Local().Format(time.RFC3339) + "  " + string(step.State)
		if step.By != "" {
			text += " by " + step.By
		}
		if step.Why != "" {
			text += ": " + step.Why
		}
		fmt.Fprintln(e.stdout, "  "+problem.Printable(text))
	}
	var args bytes.Buffer
	if err := json.Indent(&args, []byte(cmp.Or(string(s.Arguments), "{}")), "", "  "); err != nil {
		return fmt.Errorf("the arguments can't be read: %w", err)
	}
	fmt.Fprintf(e.stdout, "\narguments:\n%s\n", problem.PrintableJSON(args.Bytes()))
	return e.intentResult(s)
}

// intentResult prints the outcome of an intent.
func (e *env) intentResult(s httpapi.ShownIntent) error {
	if !s.State.Ended() {
		return nil
	}
	fmt.Fprintln(e.stdout, "\nresult:")
	switch {
	case s.Result != nil:
		return e.content(s.Result.Content, false)
	case s.Withheld != "":
		fmt.Fprintln(e.stdout, "(withheld: "+problem.Printable(s.Withheld)+")")
	case s.Code != "":
		fmt.Fprintf(e.stdout, "%s: %s\n", s.Code, problem.Printable(s.Message))
	case s.ResultBytes > 0:
		fmt.Fprintf(e.stdout, "(%d bytes, too many to be kept; %s)\n", s.ResultBytes, short(s.ResultDigest))
	default:
		fmt.Fprintln(e.stdout, cmp.Or(problem.Printable(s.Message), "(none)"))
	}
	return nil
}

// intentOutcome prints an intent as a finished call, or what to do if it has not ended. where are the flags
// of the command that shows it.
func (e *env) intentOutcome(s httpapi.ShownIntent, where string) error {
	failed := s.State.Ended() && s.State != intent.Succeeded
	switch {
	case e.json:
		if err := e.printJSON(s); err != nil {
			return err
		}
	case !s.State.Ended():
		fmt.Fprintf(e.stdout, "intent %s is %s\n", s.ID, s.State)
		fmt.Fprintf(e.stderr, "next: catalogd intents show %s%s\n", s.ID, where)
	case s.Result != nil:
		if err := e.content(s.Result.Content, s.Result.IsError); err != nil {
			return err
		}
	case s.Code != "":
		fmt.Fprintf(e.stderr, "%s: %s\n", s.Code, problem.Printable(s.Message))
	case failed:
		fmt.Fprintf(e.stderr, "%s: %s\n", s.State, problem.Printable(s.Message))
	case s.Withheld != "":
		fmt.Fprintf(e.stderr, "it succeeded; its result is withheld: %s\n", problem.Printable(s.Withheld))
	default:
		fmt.Fprintf(e.stdout, "intent %s is %s\n", s.ID, s.State)
	}
	if failed {
		return errFailed
	}
	return nil
}

// watchEvery is the interval of checks for changes.
const watchEvery = time.Second

// watchIntents prints the matching intents, and then each whose state changes, until the command is
// interrupted. It covers the newest mostIntents, and as many older ones that have not ended.
func (e *env) watchIntents(at intentsAt, f catalogd.IntentFilter) error {
	known, wanted, first := map[string]httpapi.ListedIntent{}, f.States, true
	f.Limit = mostIntents
	open := slices.DeleteFunc(catalogd.IntentStates(), func(s catalogd.IntentState) bool { return s.Ended() && s != intent.Unknown })
	for {
		seen := map[string]httpapi.ListedIntent{}
		for _, states := range [][]catalogd.IntentState{nil, open} {
			f.States = states
			page, err := at.list(e.ctx, f)
			if err != nil {
				return e.unlessInterrupted(err)
			}
			for _, in := range page.Intents {
				seen[in.ID] = in
			}
		}
		for id, in := range known { // those that have ended, or exceed the cap
			if _, ok := seen[id]; ok || in.State.Ended() {
				continue
			}
			if s, err := at.show(e.ctx, id, 0); err == nil {
				seen[id] = httpapi.NewListedIntent(s.Intent, s.May)
			} else if e.ctx.Err() != nil {
				return nil
			}
		}
		var changed []httpapi.ListedIntent
		for id, in := range seen {
			before, was := known[id]
			matches := len(wanted) == 0 || slices.Contains(wanted, in.State) || was && slices.Contains(wanted, before.State)
			if matches && (!was || before.State != in.State || !before.Since.Equal(in.Since)) {
				changed = append(changed, in)
			}
		}
		slices.SortFunc(changed, func(a, b httpapi.ListedIntent) int {
			return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Seq, b.Seq))
		})
		if err := e.watched(changed, first); err != nil {
			return err
		}
		known, first = seen, false
		select {
		case <-e.ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

func (e *env) unlessInterrupted(err error) error {
	if e.ctx.Err() != nil {
		return nil
	}
	return err
}

// watched prints changes: one JSON object per line, or table rows with fixed column widths.
func (e *env) watched(changed []httpapi.ListedIntent, first bool) error {
	line := func(cells []string) error {
		_, err := fmt.Fprintf(e.stdout, "%-25s  %-32s  %-17s  %-16s  %-24s  %-16s  %s\n", cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6])
		return err
	}
	if first && !e.json {
		if err := line([]string{"TIME", "ID", "STATE", "BRANCH", "TOOL", "PRINCIPAL", "WAITS FOR"}); err != nil {
			return err
		}
	}
	for _, in := range changed {
		var err error
		if e.json {
			var raw []byte
			if raw, err = json.Marshal(in); err == nil {
				_, err = fmt.Fprintf(e.stdout, "%s\n", problem.PrintableJSON(raw))
			}
		} else {
			row := intentRow(in)
			row[0], row[1] = in.Since.Local().Format(time.RFC3339), in.ID
			for i := range row {
				row[i] = problem.Printable(strings.ReplaceAll(row[i], "\n", " "))
			}
			err = line(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
