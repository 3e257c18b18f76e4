package strictjson

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Problem is what is wrong with the input. Its text is what should be there.
type Problem string

const (
	// Broken syntax.
	Value          Problem = "a JSON value"
	Key            Problem = "a key in double quotes"
	Colon          Problem = "a colon after a key"
	CommaInObject  Problem = "a comma or } in an object"
	CommaInList    Problem = "a comma or ] in an array"
	Digit          Problem = "a digit"
	FractionDigit  Problem = "a digit after the decimal point"
	ExponentDigit  Problem = "a digit in the exponent"
	LeadingZero    Problem = "a number without leading zeros"
	ClosingQuote   Problem = "a closing double quote"
	Escape         Problem = "an escape that JSON knows"
	HexDigits      Problem = "four hexadecimal digits after \\u"
	Control        Problem = "control characters in a string escaped"
	ClosingComment Problem = "*/ after a comment"
	// What readers of JSON disagree about.
	UTF8      Problem = "text in UTF-8"
	Surrogate Problem = "both halves of a surrogate pair"
	Trailing  Problem = "nothing after the value"
	Duplicate Problem = "each key once"
	// More than a caller takes.
	Depth     Problem = "less nesting"
	Number    Problem = "a number that a 64-bit float can hold"
	NotObject Problem = "an object"
	NotList   Problem = "a list"
)

// Error is why the input is refused, and where. Offsets count bytes.
type Error struct {
	Problem Problem
	// Truncated says that the input ends too early.
	Truncated bool
	// Offset is where the problem is, Token where the token begins that it is in.
	Offset, Token int
	// Pointer is the JSON pointer (RFC 6901) of the value or key that the problem is in.
	Pointer string
	// Text is the key of a Duplicate and the digits of a Number.
	Text string
	// Limit is that of a Depth.
	Limit int
}

func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason(), e.Offset) }

// Reason is the error without its place.
func (e *Error) Reason() string {
	switch {
	case e.Problem == Duplicate:
		return fmt.Sprintf("duplicate key %q", e.Text)
	case e.Problem == Depth:
		return fmt.Sprintf("nested more than %d levels deep", e.Limit)
	case e.Truncated:
		return fmt.Sprintf("expected %s, but the input ends", e.Problem)
	}
	return fmt.Sprintf("expected %s", e.Problem)
}

// Is reports whether err is an *Error of one of these problems.
func Is(err error, problems ...Problem) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, p := range problems {
		if e.Problem == p {
			return true
		}
	}
	return false
}

// explain turns an error of jsontext into an *Error. The state of tokens is still the one before the token
// that failed, which says what could have followed.
func (r *reader) explain(err error) error {
	e := &Error{Offset: len(r.data), Truncated: errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		e.Pointer = string(syntax.JSONPointer)
		if !e.Truncated {
			e.Offset = int(syntax.ByteOffset)
		}
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		e.Problem, e.Token, e.Text = Duplicate, e.Offset, syntax.JSONPointer.LastToken()
		return e
	}
	e.Problem, e.Token = r.expected(e.Offset)
	switch e.Problem {
	case Colon:
		e.Pointer = string(r.tokens.StackPointer().Parent())
	case LeadingZero:
		e.Pointer = r.pointer()
	case Depth:
		e.Limit = deepest
	case Value, Key, CommaInObject, CommaInList:
	default:
		return e // in a token
	}
	e.Offset = e.Token
	return e
}

// expected says what should be at the offset where reading failed, and where the token of that offset begins.
func (r *reader) expected(offset int) (problem Problem, token int) {
	within, length := r.tokens.StackIndex(r.tokens.StackDepth())
	needsKey := within == jsontext.KindBeginObject && length%2 == 0
	at := r.space(int(r.tokens.InputOffset()))
	switch {
	case within == jsontext.KindBeginObject && !needsKey:
		if r.at(at) != ':' {
			return Colon, at
		}
		at = r.space(at + 1)
	case within != 0 && length > 0:
		c := r.at(at)
		switch {
		case c == ',':
			at = r.space(at + 1)
		case isDigit(c) && r.at(at-1) == '0':
			return LeadingZero, at
		case within == jsontext.KindBeginObject:
			return CommaInObject, at
		default:
			return CommaInList, at
		}
	}
	switch c := r.at(at); {
	case needsKey && c != '"':
		return Key, at
	case c == '"':
		return r.inString(offset), at
	case c == '-' || isDigit(c):
		switch r.at(offset - 1) {
		case '.':
			return FractionDigit, at
		case 'e', 'E', '+':
			return ExponentDigit, at
		case '-':
			if offset-1 > at {
				return ExponentDigit, at
			}
		}
		return Digit, at
	case (c == '{' || c == '[') && r.tokens.StackDepth() >= deepest:
		return Depth, at
	}
	return Value, at
}

// inString says what is wrong at an offset in a string.
func (r *reader) inString(offset int) Problem {
	switch c := r.at(offset); {
	case offset >= len(r.data):
		return ClosingQuote
	case c < ' ':
		return Control
	case c != '\\':
		return UTF8
	case r.at(offset+1) != 'u':
		return Escape
	}
	for i := range 4 {
		c := r.at(offset+2+i) | 0x20
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return HexDigits
		}
	}
	return Surrogate
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// at is the byte at an offset, 0 outside.
func (r *reader) at(offset int) byte {
	if offset < 0 || offset >= len(r.data) {
		return 0
	}
	return r.data[offset]
}

// space is where the white space at an offset ends.
func (r *reader) space(at int) int {
	for at < len(r.data) && strings.IndexByte(" \t\r\n", r.data[at]) >= 0 {
		at++
	}
	return at
}
