package dispatch

import (
	"flag"
	"os"
	"testing"
)

// checksAsked tells whether somebody said how many runs the models make.
var checksAsked bool

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { checksAsked = checksAsked || f.Name == "rapid.checks" })
	os.Exit(m.Run())
}

// deep lets rapid make so many runs in this test, unless somebody says how many: `make model` does. Under the race detector,
// which finds nothing where there is no goroutine, they are the usual few.
func deep(t *testing.T, checks string) {
	if raced || checksAsked {
		return
	}
	usual := flag.Lookup("rapid.checks").Value.String()
	t.Cleanup(func() { setChecks(t, usual) })
	setChecks(t, checks)
}

func setChecks(t *testing.T, n string) {
	if err := flag.Set("rapid.checks", n); err != nil {
		t.Fatal(err)
	}
}
