package gotype

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// options are encoding/json's, as programs know it, but exact: names as they are written, no unknown and no
// duplicate names, valid UTF-8, and neither a nil slice nor a nil map is null.
var options = jsonv2.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsonv1.CallMethodsWithLegacySemantics(false),
	jsonv1.ReportErrorsWithLegacySemantics(false),
	jsonv1.UnmarshalArrayFromAnyLength(false),
	jsonv2.MatchCaseInsensitiveNames(false),
	jsonv2.RejectUnknownMembers(true),
	jsonv2.FormatNilSliceAsNull(false),
	jsonv2.FormatNilMapAsNull(false),
	jsonv2.Deterministic(true),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
	jsontext.EscapeForHTML(false),
	jsontext.EscapeForJS(false),
	jsonv2.WithMarshalers(jsonv2.MarshalToFunc(func(e *jsontext.Encoder, n json.Number) error {
		return e.WriteValue(jsontext.Value(cmp.Or(n, "0"))) // the zero value, as encoding/json writes it
	})),
)

// reading are the options of Decode: a number in an any keeps its digits, as a json.Number, and a time is read in
// every form that the contract accepts.
var reading = jsonv2.JoinOptions(options, jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
	jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
		if d.PeekKind() != jsontext.KindNumber {
			return errors.ErrUnsupported
		}
		n, err := d.ReadValue()
		*v = json.Number(n)
		return err
	}),
	jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, v *json.Number) error {
		n, err := d.ReadValue()
		*v = json.Number(n)
		return err
	}),
	jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, v *time.Time) error {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		*v, err = parseTime(t.String())
		return err
	}),
)))

// Mismatch is the error of Decode for a value that a type does not take, at the JSON pointer of the value.
type Mismatch struct {
	Pointer string
	Err     error
}

func (m *Mismatch) Error() string { return m.Pointer + ": " + m.Err.Error() }

// Unwrap returns the reason.
func (m *Mismatch) Unwrap() error { return m.Err }

// Decode reads JSON that the contract of v's type has accepted. The error is a *Mismatch, such as that of an
// UnmarshalText which refuses the text.
func Decode(data json.RawMessage, v any) error {
	return mismatch(jsonv2.Unmarshal(data, v, reading))
}

func mismatch(err error) error {
	var at *jsonv2.SemanticError
	switch {
	case errors.As(err, &at) && at.Err != nil:
		return &Mismatch{string(at.JSONPointer), at.Err}
	case errors.As(err, &at):
		return &Mismatch{string(at.JSONPointer), err}
	case err != nil:
		return &Mismatch{"", err}
	}
	return nil
}

// DecodeResult is Decode for a reader of results, who need not know all their members.
func DecodeResult(data json.RawMessage, v any) error {
	return mismatch(jsonv2.Unmarshal(data, v, reading, jsonv2.RejectUnknownMembers(false)))
}

// Encode writes a value as compact JSON with sorted keys of maps. An error means that it has none, such as a
// floating-point number that is not finite.
func Encode(v any) (json.RawMessage, error) { return jsonv2.Marshal(v, options) }

// parseTime reads every form of RFC 3339 that a contract accepts: lower case, and a leap second as the second
// after it.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err == nil {
		return t, nil
	}
	upper, seconds := strings.ToUpper(s), len("2006-01-02T15:04:")
	if len(upper) < seconds+2 {
		return t, err
	}
	leap := time.Duration(0)
	if upper[seconds:seconds+2] == "60" {
		upper, leap = upper[:seconds]+"59"+upper[seconds+2:], time.Second
	}
	t, again := time.Parse(time.RFC3339Nano, upper)
	if again != nil {
		return t, err
	}
	return t.Add(leap), nil
}
