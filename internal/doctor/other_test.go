//go:build !linux

package doctor

const linux = false
