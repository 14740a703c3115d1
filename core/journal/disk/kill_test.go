//go:build unix

package disk

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

const killDir = "ISTHMUS_TEST_KILL_DIR"

func killOptions(dir string) Options {
	return Options{Dir: dir, SegmentMin: 4 << 10, SegmentMax: 16 << 10}
}

// TestKilled is the child of TestI7_Kill: it appends until it is killed, and tells each Seq.
func TestKilled(t *testing.T) {
	dir := os.Getenv(killDir)
	if dir == "" {
		return
	}
	j := journaltest.Open(t, newStore(t, killOptions(dir)), "j", 1, 0)
	_, next, _, err := j.Bounds(t.Context())
	for ; err == nil; next++ {
		if _, err = j.Append(context.Background(), journaltest.Numbered(int(next))); err == nil {
			fmt.Printf("seq %d\n", next)
		}
	}
	t.Fatal(err)
}

// I7: what was acknowledged is there after SIGKILL, again and again.
func TestI7_Kill(t *testing.T) {
	dir := t.TempDir()
	acked := 0
	for round := range 5 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), killDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if seq, err := strconv.Atoi(lines.Text()[len("seq "):]); err == nil {
				acked = max(acked, seq)
			}
			if n == 40+13*round {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		j := journaltest.Open(t, newStore(t, killOptions(dir)), "j", 1, journal.Seq(acked))
		_, next, _, err := j.Bounds(t.Context())
		if err != nil || int(next) > acked+2 || acked < 40*(round+1) {
			t.Fatalf("round %d: acknowledged up to %d, next %d, %v", round, acked, next, err)
		}
		journaltest.WantNumbered(t, j, 1, int(next)-1)
		j.Close()
	}
}
