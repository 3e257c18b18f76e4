//go:build race

package decision

// raced: the race detector runs, which makes work take many times as long.
const raced = true
