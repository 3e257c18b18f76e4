package state

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
)

// Question is the digest of what a list decision is asked about: the branch and the tool as the policy sees them.
type Question [sha256.Size]byte

const lists = "lists"

// Lists returns the answers that this very program got to list decisions under the policy of that digest, allowed or
// denied; nil where there are none. A policy can't depend on anything but its own files and the question, because every
// built-in by which it could is refused when it is loaded.
func (c *Cache) Lists(policy string) map[Question]bool {
	key := c.key(lists, policy)
	data, ok := c.read(lists, key)
	if !ok {
		return nil
	}
	const entry = len(Question{}) + 1
	if len(data)%entry != 0 {
		c.damaged(lists, key, errors.New("it is not whole"))
		return nil
	}
	answers := make(map[Question]bool, len(data)/entry)
	for ; len(data) > 0; data = data[entry:] {
		answers[Question(data[:entry-1])] = data[entry-1] == 1
	}
	return answers
}

// KeepLists keeps the answers for Lists, in the background. answers must not be changed any more.
func (c *Cache) KeepLists(policy string, answers map[Question]bool) {
	c.write(lists, c.key(lists, policy), func() ([]byte, error) {
		questions := slices.SortedFunc(maps.Keys(answers), func(a, b Question) int { return bytes.Compare(a[:], b[:]) })
		data := make([]byte, 0, len(answers)*(len(Question{})+1))
		for _, q := range questions {
			data = append(data, q[:]...)
			allowed := byte(0)
			if answers[q] {
				allowed = 1
			}
			data = append(data, allowed)
		}
		return data, nil
	})
}
