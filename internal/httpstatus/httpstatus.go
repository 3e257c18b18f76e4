// Package httpstatus holds the table of what the status of an HTTP answer says of a request with a side
// effect.
package httpstatus

import "github.com/catalogd/catalogd/registry"

// entry is one status of the table, with the reason.
type entry struct {
	outcome registry.Outcome // succeeded or failed
	why     string
}

const (
	did       = "the service did what it was asked"
	refused   = "the service refuses the request, and runs nothing of it"
	protocol  = "the request does not reach what would run it"
	elsewhere = "the service wants the same request sent to another address, and runs nothing here (RFC 9110, 15.4.8 and 15.4.9)"
)

// table names the statuses that answer. What it does not name is unclear, among others:
//
//	202          is named: what the service promises for later is its own to keep
//	300 to 305   303 is how a form answers that it was taken, and 301 and 302 are used for it too
//	406          frameworks find out that they can't say the answer when the work is done
//	408, 499     a proxy's time-out, or that it saw its client go
//	502, 504     a gateway's word, which knows no more
var table = map[int]entry{
	200: {registry.OutcomeSucceeded, did},
	201: {registry.OutcomeSucceeded, did},
	202: {registry.OutcomeSucceeded, "the service took the request over, and answers for what becomes of it"},
	203: {registry.OutcomeSucceeded, did},
	204: {registry.OutcomeSucceeded, did},
	205: {registry.OutcomeSucceeded, did},
	206: {registry.OutcomeSucceeded, did},
	207: {registry.OutcomeSucceeded, "the service did what it could, and its answer says what (RFC 4918, 11.1)"},
	208: {registry.OutcomeSucceeded, did},
	226: {registry.OutcomeSucceeded, did},
	307: {registry.OutcomeFailed, elsewhere},
	308: {registry.OutcomeFailed, elsewhere},
	400: {registry.OutcomeFailed, refused},
	401: {registry.OutcomeFailed, refused},
	402: {registry.OutcomeFailed, refused},
	403: {registry.OutcomeFailed, refused},
	404: {registry.OutcomeFailed, "there is nothing at the address that could run it"},
	405: {registry.OutcomeFailed, refused},
	407: {registry.OutcomeFailed, protocol},
	409: {registry.OutcomeFailed, refused},
	410: {registry.OutcomeFailed, "there is nothing at the address that could run it"},
	411: {registry.OutcomeFailed, refused},
	412: {registry.OutcomeFailed, refused},
	413: {registry.OutcomeFailed, refused},
	414: {registry.OutcomeFailed, refused},
	415: {registry.OutcomeFailed, refused},
	416: {registry.OutcomeFailed, refused},
	417: {registry.OutcomeFailed, refused},
	421: {registry.OutcomeFailed, protocol},
	422: {registry.OutcomeFailed, refused},
	423: {registry.OutcomeFailed, refused},
	424: {registry.OutcomeFailed, refused},
	425: {registry.OutcomeFailed, "the service does not risk a request that may be a replay (RFC 8470, 5.2)"},
	426: {registry.OutcomeFailed, refused},
	428: {registry.OutcomeFailed, refused},
	429: {registry.OutcomeFailed, "the service takes no more requests for now"},
	431: {registry.OutcomeFailed, refused},
	451: {registry.OutcomeFailed, refused},
	500: {registry.OutcomeFailed, "the service itself answers that it failed; how far it came is its own to say"},
	501: {registry.OutcomeFailed, "the service knows nothing that could run it"},
	503: {registry.OutcomeFailed, "the service takes no requests for now"},
	505: {registry.OutcomeFailed, protocol},
}

// Of says what a status says.
func Of(status int) registry.Outcome {
	if e, ok := table[status]; ok {
		return e.outcome
	}
	return registry.OutcomeUnclear
}
