package invoke_test

import (
	"context"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/decision"
	"github.com/catalogd/catalogd/invoke"
	"github.com/catalogd/catalogd/registry"
)

// TestMadeUpNameDoesNotFillTheLog: a client's message may hold a name of megabytes, for each of its calls.
func TestMadeUpNameDoesNotFillTheLog(t *testing.T) {
	t.Parallel()
	f := open(t, &script{}, registry.Bound{}, nil)
	f.path.Call(context.Background(), invoke.Request{Tool: strings.Repeat("x", 1<<20), Principal: decision.Local()})
	if f.log.Len() == 0 || f.log.Len() > 2048 {
		t.Errorf("the call's log line is %d bytes", f.log.Len())
	}
}
