package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/catalogd/catalogd/decision/trust"
)

// Output is the output of one run.
type Output struct {
	Stdout []byte
	// Stderr is the end of standard error.
	Stderr string
	Exit   Exit
	// TooLarge reports that standard output exceeded its cap: Stdout ends at the cap, and the group was
	// killed unless Finish is set.
	TooLarge bool
}

// Run starts the target's command, writes stdin to it, and waits for its exit. Standard output is read up to
// limit bytes; beyond that the group is killed, or, with c.Finish, the rest is discarded. When ctx ends the
// group is stopped too, and the error is ctx's cause; a failing exit status is not an error. An *UnsentError
// means that nothing was started.
func Run(ctx context.Context, tr trust.Trust, target trust.Target, c Command, stdin []byte, limit int64) (*Output, error) {
	p, err := Start(ctx, tr, target, c)
	if err != nil {
		return nil, err
	}
	defer p.Stdout.Close()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		// A child need not read its input: it may exit or close it earlier. Its exit status shows whether
		// that was a failure.
		_, _ = p.Stdin.Write(stdin)
		p.Stdin.Close()
	}()
	out := &Output{}
	out.Stdout, err = io.ReadAll(io.LimitReader(p.Stdout, limit+1))
	if int64(len(out.Stdout)) > limit {
		out.Stdout, out.TooLarge = out.Stdout[:limit], true
		if c.Finish {
			_, err = io.Copy(io.Discard, p.Stdout)
		} else {
			p.Kill()
		}
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		p.Kill()
		<-fed
		return nil, fmt.Errorf("read the output of %s: %w", target.Command.Path, err)
	}
	out.Exit = p.Wait()
	<-fed
	out.Stderr = p.Stderr()
	if ctx.Err() != nil && (!out.TooLarge || c.Finish) {
		return nil, context.Cause(ctx)
	}
	return out, nil
}
