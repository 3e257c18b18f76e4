package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/catalogd/catalogd/decision/trust"
)

// Output is what one run left behind.
type Output struct {
	Stdout []byte
	// Stderr is the end of standard error.
	Stderr string
	Exit   Exit
	// TooLarge says that standard output passed its cap: the group was killed, and Stdout ends at the cap.
	TooLarge bool
}

// Run starts the target's command, hands it stdin, and waits for its end. Standard output is read up to limit bytes.
// When ctx ends the group is ended too, and the error is ctx's cause; a child that fails by itself is no error.
func Run(ctx context.Context, tr trust.Trust, target trust.Target, c Command, stdin []byte, limit int64) (*Output, error) {
	p, err := Start(ctx, tr, target, c)
	if err != nil {
		return nil, err
	}
	defer p.Stdout.Close()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		// A child need not read its input: it may end, or close it, before. Its exit status says whether that was well.
		_, _ = p.Stdin.Write(stdin)
		p.Stdin.Close()
	}()
	out := &Output{}
	out.Stdout, err = io.ReadAll(io.LimitReader(p.Stdout, limit+1))
	if int64(len(out.Stdout)) > limit {
		out.Stdout, out.TooLarge = out.Stdout[:limit], true
		p.Kill()
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		p.Kill()
		<-fed
		return nil, fmt.Errorf("read the output of %s: %w", target.Command.Path, err)
	}
	out.Exit = p.Wait()
	<-fed
	out.Stderr = p.Stderr()
	if ctx.Err() != nil && !out.TooLarge {
		return nil, context.Cause(ctx)
	}
	return out, nil
}
