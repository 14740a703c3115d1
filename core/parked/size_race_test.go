//go:build race

package parked

// The detector makes everything tenfold, and tells no more of a million than of this.
const million = 50_000
