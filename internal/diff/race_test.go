//go:build race

package diff_test

// raced: the race detector runs, which makes work take many times as long.
const raced = true
