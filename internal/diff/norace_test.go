//go:build !race

package diff_test

const raced = false
