//go:build race

package mqtt

// raceEnabled: under the race detector pools drop what they hold at random, so allocations are not counted.
const raceEnabled = true
