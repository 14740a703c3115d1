package dispatch

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets the models take more than 100 000 steps where nobody says how many; `make model` takes twenty times as many.
// Under the race detector, which finds nothing where there is no goroutine, they take the usual few.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked && !raced {
		if err := flag.Set("rapid.checks", "900"); err != nil { // of about 30 steps, in four modes
			panic(err)
		}
	}
	os.Exit(m.Run())
}
