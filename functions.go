package catalogd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/catalogd/catalogd/registry"
)

// teardownTime is how long Close waits for running Go functions, and for their teardown.
const teardownTime = 10 * time.Second

// functions returns Functions by name; checkFunctions has found no duplicate.
func (c Config) functions() map[string]*registry.Function {
	by := make(map[string]*registry.Function, len(c.Functions))
	for _, f := range c.Functions {
		by[f.Name()] = f
	}
	return by
}

// checkFunctions returns an error if Functions has no function at an index, or two of a name.
func (c Config) checkFunctions() error {
	seen := map[string]bool{}
	for i, f := range c.Functions {
		switch {
		case f == nil:
			return fmt.Errorf("Config.Functions[%d] is nil; check the error of registry.Func", i)
		case seen[f.Name()]:
			return fmt.Errorf("Config.Functions has the function %q twice; give one another name", f.Name())
		}
		seen[f.Name()] = true
	}
	return nil
}

// checkStandIns returns an error if a catalog that is more than looked at has functions that can't be called.
func (c Config) checkStandIns() error {
	for _, f := range c.Functions {
		if f.IsStandIn() && !c.Once {
			return fmt.Errorf("function %q only stands in for that of another program; "+
				"a catalog with it can be looked at (Config.Once), not served", f.Name())
		}
	}
	return nil
}

// setUp sets up the functions in their order. If one fails, those before it are torn down. The returned function
// tears down all of them, in the reverse order.
func (c Config) setUp(ctx context.Context) (tearDown func() error, err error) {
	var done []*registry.Function
	tearDown = sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), teardownTime)
		defer cancel()
		var errs []error
		for _, f := range slices.Backward(done) {
			errs = append(errs, f.TearDown(ctx))
		}
		return errors.Join(errs...)
	})
	for _, f := range c.Functions {
		if err := f.SetUp(ctx); err != nil {
			return nil, errors.Join(err, tearDown())
		}
		done = append(done, f)
	}
	return tearDown, nil
}
