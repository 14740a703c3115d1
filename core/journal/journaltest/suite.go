package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"isthmus/core"
	"isthmus/core/journal"
)

// Run holds a tenant to the contract. open makes an empty store; reopen gives a store over the same
// data as a restarted process would find it, after every journal was closed.
func Run(t *testing.T, open func(t *testing.T) (store journal.Store, reopen func() journal.Store)) {
	for _, c := range []struct {
		name string
		f    func(*testing.T, journal.Store, func() journal.Store)
	}{
		{"Empty", testEmpty},
		{"AppendRead", testAppendRead},
		{"EarlyStop", testEarlyStop},
		{"Keep", testKeep},
		{"Invalid", testInvalid},
		{"Names", testNames},
		{"Hints", testHints},
		{"Trim", testTrim},
		{"ReadBesideAppend", testReadBesideAppend},
		{"Reopen", testReopen},
		{"DurableMissing", testDurableMissing},
		{"Fence", testFence},
		{"FenceAfterReopen", testFenceAfterReopen},
		{"Closed", testClosed},
		{"Cancelled", testCancelled},
		{"Checkpoints", testCheckpoints},
		{"CheckpointFails", testCheckpointFails},
		{"Remove", testRemove},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, reopen := open(t)
			c.f(t, s, reopen)
		})
	}
}

func testEmpty(t *testing.T, s journal.Store, _ func() journal.Store) {
	j := Open(t, s, "empty", 1, 0)
	WantBounds(t, j, 1, 1)
	WantNumbered(t, j, 1, 0)
	if err := j.Trim(context.Background(), 10); err != nil {
		t.Fatal(err)
	}
	Fill(t, j, 1, 1)
	WantNumbered(t, j, 1, 1)
}

func testAppendRead(t *testing.T, s journal.Store, _ func() journal.Store) {
	j := Open(t, s, "j", 1, 0)
	Fill(t, j, 1, 100)
	for _, from := range []int{1, 2, 50, 100, 101, 500} {
		WantNumbered(t, j, from, 100)
	}
	if rs, err := Collect(j, 0, journal.Hint{}); err != nil || len(rs) != 100 {
		t.Fatalf("from 0: %d blocks, %v", len(rs), err)
	}
	WantBounds(t, j, 1, 101)
	if _, _, n, _ := j.Bounds(context.Background()); n < 100*20 {
		t.Fatalf("%d bytes in a hundred blocks", n)
	}
}

func testEarlyStop(t *testing.T, s journal.Store, _ func() journal.Store) {
	j := Open(t, s, "j", 1, 0)
	Fill(t, j, 1, 10)
	for r, err := range j.Read(context.Background(), 3, journal.Hint{}) {
		if err != nil || r.Seq != 3 {
			t.Fatalf("block %d, %v", r.Seq, err)
		}
		break
	}
	WantNumbered(t, j, 1, 10)
}

// What was asked to stay has not changed when all the rest was read.
func testKeep(t *testing.T, s journal.Store, _ func() journal.Store) {
	j := Open(t, s, "j", 1, 0)
	var want [][]byte
	for i := range 200 { // small ones and such as no reader's buffer holds
		b := Block(int64(i), 1, int64(i), 100+i%7*97_000)
		want = append(want, b)
		if _, err := j.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	var got [][]byte
	for r, err := range j.Read(context.Background(), 1, journal.Hint{Keep: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Block)
	}
	if len(got) != len(want) {
		t.Fatalf("%d blocks of %d", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("block %d has changed", i+1)
		}
	}
}

// A block that no reader could parse must not get in.
func testInvalid(t *testing.T, s journal.Store, _ func() journal.Store) {
	j := Open(t, s, "j", 1, 0)
	for _, b := range [][]byte{nil, {}, []byte("no block"), Numbered(1)[:40]} {
		if seq, err := j.Append(context.Background(), b); !errors.Is(err, core.ErrInvalid) {
			t.Fatalf("%d bytes of nonsense: seq %d, %v", len(b), seq, err)
		}
	}
	Fill(t, j, 1, 2)
	WantNumbered(t, j, 1, 2)
}

func testNames(t *testing.T, s journal.Store, reopen func() journal.Store) {
	names := []string{"a", "A", "a/b", "a%2fb", "..", ".", "ü b", "fence", "nul\x00", fmt.Sprintf("%0300d", 1), fmt.Sprintf("%0300d", 2)}
	js := map[string]journal.Journal{}
	for i, n := range names {
		js[n] = Open(t, s, n, 1, 0)
		Fill(t, js[n], 1, i+1)
	}
	for _, j := range js {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s = reopen()
	for i, n := range names {
		WantNumbered(t, Open(t, s, n, 1, journal.Seq(i+1)), 1, i+1)
	}
	if _, err := s.Open(context.Background(), "", 1, 0); !errors.Is(err, core.ErrInvalid) {
		t.Fatalf("empty name: %v", err)
	}
}

// Hints may yield too much, never too little.
func testHints(t *testing.T, s journal.Store, reopen func() journal.Store) {
	j := Open(t, s, "j", 1, 0)
	const n = 300
	Fill(t, j, 1, n)
	blocks := make([]journal.Block, n+1)
	for i := 1; i <= n; i++ {
		var err error
		if blocks[i], err = journal.ParseBlock(Numbered(i)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(j journal.Journal) {
		t.Helper()
		for p := range uint32(4) {
			for _, from := range []core.Offset{0, 1, 50, 99, 100, 1000} {
				for _, since := range []int64{0, 1000, 150_000, 150_001, 300_000, 300_001} {
					wantHint(t, j, 1, blocks, journal.Hint{Partition: p, HasPartition: true, From: from, Since: since})
				}
			}
		}
		wantHint(t, j, 1, blocks, journal.Hint{Since: 200_500})
		wantHint(t, j, 250, blocks, journal.Hint{Since: 200_500})
		wantHint(t, j, 250, blocks, journal.Hint{Partition: 1, HasPartition: true, From: 10})
	}
	check(j)
	j.Close()
	check(Open(t, reopen(), "j", 1, n))
}

// wantHint checks that nothing from Seq from on is missing; blocks[i] is the block of Seq i.
func wantHint(t testing.TB, j journal.Journal, from int, blocks []journal.Block, h journal.Hint) {
	t.Helper()
	rs, err := Collect(j, journal.Seq(from), h)
	if err != nil {
		t.Fatalf("%+v: %v", h, err)
	}
	for i := from; i < len(blocks); i++ {
		for len(rs) > 0 && rs[0].Seq < journal.Seq(i) {
			rs = rs[1:]
		}
		if !h.Wants(blocks[i]) {
			continue
		}
		if len(rs) == 0 || rs[0].Seq != journal.Seq(i) || !bytes.Equal(rs[0].Block, blocks[i].Bytes()) {
			t.Fatalf("%+v: block %d is wanted and not there", h, i)
		}
	}
}

func testTrim(t *testing.T, s journal.Store, reopen func() journal.Store) {
	ctx := context.Background()
	j := Open(t, s, "j", 1, 0)
	Fill(t, j, 1, 100)
	for _, before := range []journal.Seq{0, 1, 40, 30, 60} {
		if err := j.Trim(ctx, before); err != nil {
			t.Fatal(err)
		}
		first, next, _, err := j.Bounds(ctx)
		if err != nil || first < 1 || first > max(1, 60) || next != 101 {
			t.Fatalf("trim before %d: bounds [%d, %d), %v", before, first, next, err)
		}
		WantNumbered(t, j, 60, 100)
		if rs, err := Collect(j, 1, journal.Hint{}); err != nil || rs[0].Seq != first {
			t.Fatalf("from a trimmed block: %v", err)
		}
	}
	if err := j.Trim(ctx, 1000); err != nil {
		t.Fatal(err)
	}
	Fill(t, j, 101, 110)
	j.Close()
	j = Open(t, reopen(), "j", 1, 110)
	WantNumbered(t, j, 101, 110)
	Fill(t, j, 111, 112)
	WantNumbered(t, j, 101, 112)
}

func testReadBesideAppend(t *testing.T, s journal.Store, _ func() journal.Store) {
	j := Open(t, s, "j", 1, 0)
	const n = 200
	done := make(chan error, 2)
	for range cap(done) {
		go func() {
			for next := journal.Seq(1); next <= n; {
				rs, err := Collect(j, next, journal.Hint{})
				for _, r := range rs {
					if r.Seq != next || !bytes.Equal(r.Block, Numbered(int(r.Seq))) {
						err = errors.Join(err, fmt.Errorf("block %d read as %d or changed", next, r.Seq))
					}
					next = r.Seq + 1
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	Fill(t, j, 1, n)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func testReopen(t *testing.T, s journal.Store, reopen func() journal.Store) {
	j := Open(t, s, "j", 1, 0)
	n := 0
	for _, more := range []int{1, 0, 30, 1} {
		Fill(t, j, n+1, n+more)
		n += more
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = Open(t, reopen(), "j", 1, journal.Seq(n))
		WantBounds(t, j, 1, journal.Seq(n+1))
		WantNumbered(t, j, 1, n)
	}
}

func testDurableMissing(t *testing.T, s journal.Store, reopen func() journal.Store) {
	if _, err := s.Open(context.Background(), "none", 1, 1); !errors.Is(err, journal.ErrDamaged) {
		t.Fatalf("an empty journal for a durable one: %v", err)
	}
	j := Open(t, s, "j", 1, 0)
	Fill(t, j, 1, 5)
	j.Close()
	if _, err := reopen().Open(context.Background(), "j", 1, 6); !errors.Is(err, journal.ErrDamaged) {
		t.Fatalf("one block too few: %v", err)
	}
}

func testFence(t *testing.T, s journal.Store, _ func() journal.Store) {
	ctx := context.Background()
	old := Open(t, s, "j", 5, 0)
	Fill(t, old, 1, 3)
	young := Open(t, s, "j", 7, 3)
	if _, err := old.Append(ctx, Numbered(4)); !errors.Is(err, core.ErrFenced) {
		t.Fatalf("append by a fenced owner: %v", err)
	}
	Fill(t, young, 4, 5)
	if _, err := s.Open(ctx, "j", 6, 0); !errors.Is(err, core.ErrFenced) {
		t.Fatalf("open with a lower epoch: %v", err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	Fill(t, young, 6, 6)
	WantNumbered(t, young, 1, 6)
}

func testFenceAfterReopen(t *testing.T, s journal.Store, reopen func() journal.Store) {
	j := Open(t, s, "j", 7, 0) // no block: the fence alone must last
	j.Close()
	s = reopen()
	if _, err := s.Open(context.Background(), "j", 6, 0); !errors.Is(err, core.ErrFenced) {
		t.Fatalf("open with a lower epoch: %v", err)
	}
	Fill(t, Open(t, s, "j", 7, 0), 1, 1)
}

func testClosed(t *testing.T, s journal.Store, _ func() journal.Store) {
	ctx := context.Background()
	j := Open(t, s, "j", 1, 0)
	Fill(t, j, 1, 2)
	for range 2 {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.Append(ctx, Numbered(3)); !errors.Is(err, core.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if err := j.Trim(ctx, 1); !errors.Is(err, core.ErrClosed) {
		t.Errorf("trim: %v", err)
	}
	if _, _, _, err := j.Bounds(ctx); !errors.Is(err, core.ErrClosed) {
		t.Errorf("bounds: %v", err)
	}
	if _, err := Collect(j, 1, journal.Hint{}); !errors.Is(err, core.ErrClosed) {
		t.Errorf("read: %v", err)
	}
}

// A context that has ended stops what has not begun, and breaks nothing.
func testCancelled(t *testing.T, s journal.Store, _ func() journal.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	j := Open(t, s, "j", 1, 0)
	Fill(t, j, 1, 3)
	cancel()
	if _, err := j.Append(ctx, Numbered(4)); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	n := 0
	for _, err := range j.Read(ctx, 1, journal.Hint{}) {
		if n++; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("read: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("read: %d steps", n)
	}
	Fill(t, j, 4, 4)
	WantNumbered(t, j, 1, 4)
}
