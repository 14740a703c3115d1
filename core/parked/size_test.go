//go:build !race

package parked

const million = 1_000_000
