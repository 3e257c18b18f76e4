package contract_test

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/catalogd/catalogd/contract"
)

const five = `{"type":"object","properties":{
	"city":{"type":"string","minLength":1},"units":{"type":"string","enum":["celsius","fahrenheit"],"default":"celsius"},
	"limit":{"type":"integer","minimum":1,"maximum":100},"verbose":{"type":"boolean"},"tag":{"type":"string","pattern":"^[a-z]+$"}},
	"required":["city"],"additionalProperties":false}`

// TestMemoryIsFlat: calls that bring ever new keys leave nothing behind. CATALOGD_CALLS=1000000 is the whole of it (`make
// soak`).
func TestMemoryIsFlat(t *testing.T) {
	calls := 20_000
	if n, err := strconv.Atoi(os.Getenv("CATALOGD_CALLS")); err == nil {
		calls = n
	}
	for name, c := range map[string]*contract.Contract{"closed": compile(t, five, contract.Closed), "in a map": compile(t, `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"integer"}}},"additionalProperties":false}`, contract.Closed)} {
		send := func(from, n int) {
			for i := range n {
				in := `{"city":"x","key-%d-%d":1}`
				if name != "closed" {
					in = `{"m":{"key-%d-%d":1.0}}`
				}
				_, found := check(c, json.RawMessage(fmt.Sprintf(in, from, i)))
				if (found == nil) != (name != "closed") {
					t.Fatal(found)
				}
			}
		}
		live := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		send(0, 2000)
		before := live()
		send(1, calls)
		// One kept key of each call would be well over a hundred bytes; the rest is the noise of other tests' garbage.
		if after := live(); after > before+uint64(calls)*16+1<<20 {
			t.Errorf("%s: %d bytes live after %d calls, %d before", name, after, calls, before)
		}
	}
}

// TestCallers has 64 of them check at once, the first of them the first of all.
func TestCallers(t *testing.T) {
	t.Parallel()
	spec := compile(t, five, contract.Closed).Spec()
	spec.Coerce = true
	c, err := contract.New(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 50 {
				args, found := check(c, json.RawMessage(fmt.Sprintf(`{"city":"x%d","limit":"%d"}`, i, 1+j)))
				if want := fmt.Sprintf(`{"city":"x%d","limit":%d,"units":"celsius"}`, i, 1+j); found != nil || string(args.JSON()) != want {
					t.Errorf("%s, %v; want %s", args.JSON(), found, want)
				}
				if _, found := check(c, json.RawMessage(fmt.Sprintf(`{"ctiy":"x%d","limit":%d}`, i, 1000+j))); len(found) != 3 {
					t.Errorf("%v", found)
				}
			}
		})
	}
	wg.Wait()
}

// TestAllocations holds the budget of a call of five arguments: 30 allocations.
func TestAllocations(t *testing.T) {
	c := compile(t, five, contract.Closed)
	raw := json.RawMessage(`{"city":"Paris","units":"celsius","limit":10,"verbose":true,"tag":"abc"}`)
	if n := testing.AllocsPerRun(100, func() { check(c, raw) }); n > 30 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCheckCoerced(b *testing.B) {
	spec := compile(b, five, contract.Closed).Spec()
	spec.Coerce = true
	c, err := contract.New(spec, nil)
	if err != nil {
		b.Fatal(err)
	}
	raw := json.RawMessage(`{"city":"Paris","units":"celsius","limit":"10","verbose":"true","tag":"abc"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, found := check(c, raw); len(found) > 0 {
			b.Fatal(found)
		}
	}
}

func BenchmarkCheckRefused(b *testing.B) {
	c := compile(b, five, contract.Closed)
	raw := json.RawMessage(`{"ctiy":"Paris","units":"kelvin","limit":1000,"verbose":"true","tag":"ABC"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, found := check(c, raw); len(found) != 6 {
			b.Fatal(found)
		}
	}
}
