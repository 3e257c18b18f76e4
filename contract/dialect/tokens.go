package dialect

import (
	"unicode"

	"github.com/catalogd/catalogd/internal/strictjson"
)

// The values that fit the counts of a real tokenizer best: how many letters of a word, punctuation characters
// of JSON and digits make one token. TestTokens measures the error.
const (
	lettersPerToken = 11
	signsPerToken   = 5
	digitsPerToken  = 3
)

// Tokens estimates how many tokens of a model's context a tool takes: its name, its description and the
// schema of its arguments, as compact JSON. The real number depends on the model's tokenizer and on what the
// provider adds to its tools. Compared with o200k_base (OpenAI's, 2024) on 175 real tools, a tool is off by 3
// % on average and by 13 % at most, the sum of them by 1 %.
//
// It counts as such tokenizers split: a word, which a capital letter begins anew, is one token, and a long
// one several; three digits are one; a few punctuation characters between words are one; a non-ASCII letter
// is one.
func Tokens(t Tool) int {
	schema, err := parse(t.Input)
	if err != nil {
		return estimate(string(t.Input)) // no contract has such a schema
	}
	told := strictjson.New("name", t.Name)
	if t.Description != "" {
		told.Set("description", t.Description)
	}
	told.Set("input_schema", schema)
	return estimate(string(encode(told)))
}

func estimate(text string) (n int) {
	runes := []rune(text)
	for i := 0; i < len(runes); {
		j := i + 1
		switch first := runes[i]; {
		case unicode.IsLetter(first):
			for j < len(runes) && sameWord(runes[j-1], runes[j]) {
				j++
			}
			if first < unicode.MaxASCII {
				n += ceil(j-i, lettersPerToken)
			} else {
				n += j - i
			}
		case unicode.IsDigit(first):
			for j < len(runes) && unicode.IsDigit(runes[j]) {
				j++
			}
			n += ceil(j-i, digitsPerToken)
		case unicode.IsSpace(first):
			for j < len(runes) && unicode.IsSpace(runes[j]) {
				j++
			}
			if j-i > 1 { // a single space belongs to the following word
				n++
			}
		default:
			for j < len(runes) && isSign(runes[j]) {
				j++
			}
			n += ceil(j-i, signsPerToken)
		}
		i = j
	}
	return n
}

func sameWord(before, r rune) bool {
	return unicode.IsLetter(r) && (before < unicode.MaxASCII) == (r < unicode.MaxASCII) && !(unicode.IsLower(before) && unicode.IsUpper(r))
}

func isSign(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSpace(r) }

func ceil(n, by int) int { return (n + by - 1) / by }
