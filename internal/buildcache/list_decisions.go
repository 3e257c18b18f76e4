package buildcache

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
)

// Question is the digest of the input of a list decision: the branch and the tool as the policy sees them.
type Question [sha256.Size]byte

// listFiles is the kind of the files that hold answers of list decisions.
const listFiles = "lists"

// Lists returns, by question, whether the policy with this digest allowed what this very program asked it;
// nil where nothing is kept. The answers stay true, because a policy that uses a built-in by which it could
// depend on more than its own files and the question is refused when it is loaded.
func (c *Cache) Lists(policy string) map[Question]bool {
	key := c.key(listFiles, policy)
	data, ok := c.read(listFiles, key)
	if !ok {
		return nil
	}
	const entry = len(Question{}) + 1
	if len(data)%entry != 0 {
		c.discard(listFiles, key, errors.New("it is not whole"))
		return nil
	}
	answers := make(map[Question]bool, len(data)/entry)
	for ; len(data) > 0; data = data[entry:] {
		answers[Question(data[:entry-1])] = data[entry-1] == 1
	}
	return answers
}

// KeepLists writes the answers for Lists in the background. The caller must not change answers afterwards.
func (c *Cache) KeepLists(policy string, answers map[Question]bool) {
	c.write(listFiles, c.key(listFiles, policy), func() ([]byte, error) {
		inOrder := func(a, b Question) int { return bytes.Compare(a[:], b[:]) }
		data := make([]byte, 0, len(answers)*(len(Question{})+1))
		for _, q := range slices.SortedFunc(maps.Keys(answers), inOrder) {
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
