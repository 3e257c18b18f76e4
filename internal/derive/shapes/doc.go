// Package shapes has one test, TestShapes: a second opinion on what package derive makes of a tool's args. It
// was written from the CUE specification and from docs/arguments.md, by somebody who has not read package
// derive, so that the two don't share a mistake.
//
// A shape is one tool's args. Shapes are all combinations of the productions of a small grammar
// (values_test.go, wrappers_test.go, declarations_test.go) up to depth 3, numbered (enumerate_test.go). Each
// shape is compiled by the real loader (catalog_test.go). Then each of its calls (calls_test.go) is answered
// four times: by CUE itself (truth_test.go), by the contract's Check, by the advertised schema under a JSON
// Schema validator that catalogd doesn't use, and by CUE again in other orders where the answers differ.
// verdicts_test.go says which differences are faults, report_test.go names each kind of fault once, by its
// smallest shape.
package shapes
