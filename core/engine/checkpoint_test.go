package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/meta"
)

// lines collects what an engine logs.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// take returns what was logged since the last call.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

// viewBed is a bed whose topics de-duplicate, and its log.
func viewBed(t testing.TB, change func(*engine.Config)) (*enginetest.Bed, *lines) {
	ls := &lines{}
	bed := dedupBed(t, func(c *engine.Config) {
		c.Log = slog.New(slog.NewTextHandler(ls, &slog.HandlerOptions{Level: slog.LevelDebug}))
		change(c)
	})
	return bed, ls
}

var replayedBytes = regexp.MustCompile(`msg="journal replayed" .*bytes=(\d+)`)

// replayed is how much the last start has read of a journal.
func replayed(t testing.TB, log string) (n int) {
	t.Helper()
	m := replayedBytes.FindStringSubmatch(log)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// pour publishes numbered messages of some size, so that a sequence says what is stored, and waits for the last receipt.
func pour(t testing.TB, bed *enginetest.Bed, from, n, size int) {
	t.Helper()
	part := bed.Topic(t, "event", 0).Partition(0)
	p := newPublisher(bed.Engine)
	filling := strings.Repeat("x", size)
	for i := range n {
		e := message("k", filling)
		e.Producer, e.Flags = fmt.Appendf(nil, "p%d", i%7), e.Flags|core.FlagSequenced
		e.SeqLow, e.SeqHigh = int64(from+i), int64(from+i)
		if err := p.Publish(part, e, 0); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		if r := receive(t, p.receipts, "receipt"); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

// lastOf is the highest sequence that is known of the producers that pour uses.
func lastOf(t testing.TB, bed *enginetest.Bed) (last int64) {
	last = -1
	for i := range 7 {
		last = max(last, bed.Topic(t, "event", 0).LastSequence(fmt.Sprint("p", i), 0))
	}
	return last
}

// After 150 MiB a start reads at most 64 MiB of a journal, whether it ended in order or not, and knows all that was stored.
func TestStartUpIsBounded(t *testing.T) {
	bed, log := viewBed(t, func(*engine.Config) {})
	const bound, size = 64 << 20, 256 << 10
	n := 0
	for range 3 {
		pour(t, bed, n, 200, size)
		n += 200
		log.take()
		crash(t, bed)
		if got := replayed(t, log.take()); got == 0 || got > bound {
			t.Fatalf("%d bytes were replayed after %d MiB, at most %d may be", got, n*size>>20, bound)
		}
		if last := lastOf(t, bed); last != int64(n-1) {
			t.Fatalf("last sequence %d, want %d", last, n-1)
		}
		checkViews(t, bed)
	}
	bed.Stop(t)
	log.take()
	bed.Start(t)
	if got := replayed(t, log.take()); got != 0 {
		t.Fatalf("%d bytes were replayed after an end in order", got)
	}
	if last := lastOf(t, bed); last != int64(n-1) {
		t.Fatalf("last sequence %d, want %d", last, n-1)
	}
}

// many lets several checkpoints of small blocks be taken.
func many(t *testing.T, bed *enginetest.Bed) {
	t.Helper()
	for i := range 30 {
		pour(t, bed, i*40, 40, 1<<10)
	}
	awaitSaved(t, bed, "checkpoint", func() bool { return len(checkpointFiles(t, bed)) > 0 })
}

// checkpointRecord is what metadata says of the view.
func checkpointRecord(t testing.TB, bed *enginetest.Bed) (rec meta.CheckpointRecord) {
	t.Helper()
	err := bed.Meta.Load(meta.Checkpoints, func(key string, v []byte) error {
		if key == "small-0\x00dedup" {
			return meta.DecodeJSON(v, &rec)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func checkpointFiles(t testing.TB, bed *enginetest.Bed) (names []string) {
	t.Helper()
	for _, f := range checkpointRecord(t, bed).Files {
		names = append(names, f.Name)
	}
	return names
}

func small(c *engine.Config) { c.ViewBytes = 64 << 10 }

// A snapshot is followed by files of what changed; what is replaced is removed, and so is what a crash left behind.
func TestOldCheckpointsAreRemoved(t *testing.T) {
	bed, _ := viewBed(t, small)
	many(t, bed)
	crash(t, bed) // leaves a file that metadata does not name
	onDisk := func() []string {
		names, err := bed.Journals.ListCheckpoints("small-0")
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, "dedup-") })
	}
	if want := checkpointFiles(t, bed); !slices.Equal(onDisk(), want) {
		t.Fatalf("files %q, metadata names %q", onDisk(), want)
	}
	if n := len(onDisk()); n > 10 {
		t.Fatalf("%d files: the snapshot is never written anew", n)
	}
	checkViews(t, bed)
}

// A checkpoint that is missing or broken costs a pass over the whole journal, and nothing else.
func TestABrokenCheckpointIsMadeAgain(t *testing.T) {
	for name, breakIt := range breakages {
		t.Run(name, func(t *testing.T) {
			bed, log := viewBed(t, small)
			many(t, bed)
			bed.Kill()
			breakIt(t, bed)
			log.take()
			bed.Start(t)
			if out := log.take(); !strings.Contains(out, "checkpoint is broken") || !strings.Contains(out, "view is made again") {
				t.Fatalf("nothing was said about it:\n%s", out)
			}
			if last := lastOf(t, bed); last != 1199 {
				t.Fatalf("last sequence %d, want 1199", last)
			}
			checkViews(t, bed)
			bed.Restart(t)
			if out := log.take(); strings.Contains(out, "checkpoint is broken") {
				t.Fatalf("still broken:\n%s", out)
			}
			checkViews(t, bed)
		})
	}
}

// breakages spoil the files that metadata names after the engine has ended.
var breakages = map[string]func(*testing.T, *enginetest.Bed){
	"missing": func(t *testing.T, bed *enginetest.Bed) {
		for _, f := range checkpointFiles(t, bed) {
			if err := bed.Journals.RemoveCheckpoint("small-0", f); err != nil {
				t.Fatal(err)
			}
		}
	},
	"one bit": func(t *testing.T, bed *enginetest.Bed) {
		rewrite(t, bed, func(b []byte) []byte { b[len(b)/2] ^= 0x10; return b })
	},
	"cut short": func(t *testing.T, bed *enginetest.Bed) {
		rewrite(t, bed, func(b []byte) []byte { return b[:len(b)-1] })
	},
}

// rewrite changes the newest file.
func rewrite(t *testing.T, bed *enginetest.Bed, change func([]byte) []byte) {
	t.Helper()
	files := checkpointFiles(t, bed)
	name := files[len(files)-1]
	r, err := bed.Journals.OpenCheckpoint("small-0", name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	b = change(slices.Clone(b))
	if err := bed.Journals.CreateCheckpoint(t.Context(), "small-0", name, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// When the journal does not go back far enough either, that is damage with a name: a topic out of service, never a
// message that is taken for a duplicate of nothing or stored twice.
func TestABrokenCheckpointOfATrimmedJournalIsDamage(t *testing.T) {
	bed, _ := viewBed(t, small)
	many(t, bed)
	bed.Kill()
	j, err := bed.Journals.Open(t.Context(), "small-0", 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Trim(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	j.Close()
	// The next owner has to have a higher epoch than the one that trimmed.
	recs := map[string]meta.JournalRecord{}
	if err := bed.Meta.Load(meta.Journals, func(key string, v []byte) error {
		rec, err := meta.DecodeJournal(v)
		rec.Epoch = 200
		recs[key] = rec
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for key, rec := range recs {
		if err := bed.Meta.Apply([]meta.Write{{Bucket: meta.Journals, Key: key, Value: rec.Encode()}}); err != nil {
			t.Fatal(err)
		}
	}
	breakages["missing"](t, bed)
	bed.Start(t)
	_, err = bed.Engine.Topic(core.TopicName{Tenant: "public", Namespace: "default", Name: "event"})
	if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "damaged") {
		t.Fatalf("topic: %v", err)
	}
}

// A checkpoint that cannot be written is tried again later; publishing goes on and nothing is trimmed.
func TestAFailingCheckpointHoldsNobodyUp(t *testing.T) {
	bed, log := viewBed(t, small)
	bed.Journals.OnCheckpoint(func(string, string) error { return errors.New("disk full") })
	for i := range 10 {
		pour(t, bed, i*40, 40, 1<<10)
	}
	awaitSaved(t, bed, "failure", func() bool { return strings.Contains(log.take(), "checkpoint not written") })
	if rec := checkpointRecord(t, bed); rec.Seq != 0 {
		t.Fatalf("recorded all the same: %+v", rec)
	}
	crash(t, bed)
	checkViews(t, bed)
	bed.Journals.OnCheckpoint(nil)
	pour(t, bed, 400, 200, 1<<10)
	awaitSaved(t, bed, "checkpoint", func() bool { return checkpointRecord(t, bed).Seq > 0 })
	crash(t, bed)
	if last := lastOf(t, bed); last != 599 {
		t.Fatalf("last sequence %d, want 599", last)
	}
	checkViews(t, bed)
}

// Appends go on while a checkpoint is being written.
func TestPublishingDoesNotWaitForACheckpoint(t *testing.T) {
	bed, _ := viewBed(t, small)
	writing, release := make(chan bool, 1), make(chan bool)
	bed.Journals.OnCheckpoint(func(string, string) error {
		select {
		case writing <- true:
		default:
		}
		<-release
		return nil
	})
	letGo := sync.OnceFunc(func() { close(release) })
	defer letGo()
	pour(t, bed, 0, 200, 1<<10)
	receive(t, writing, "checkpoint")
	pour(t, bed, 200, 1000, 1<<10) // several more are due meanwhile
	letGo()
	awaitSaved(t, bed, "checkpoint", func() bool { return checkpointRecord(t, bed).Seq > 0 })
	checkViews(t, bed)
}

// What lies beyond the oldest checkpoint that is needed is never trimmed, and the wish to trim makes a new one.
func TestTrimStaysBehindTheCheckpoint(t *testing.T) {
	now := time.Now()
	bed, _ := viewBed(t, func(c *engine.Config) {
		c.SaveEvery, c.MarkBytes = 5*time.Millisecond, 64<<10
		c.Now = func() time.Time { return now.Add(time.Hour) }
		c.TrimFloor = time.Minute
	})
	bed.Journals.OnCheckpoint(func(string, string) error { return errors.New("disk full") })
	pour(t, bed, 0, 600, 4<<10)
	part := bed.Topic(t, "event", 0).Partition(0)
	bed.Restart(t)
	if first, _ := part.Bounds(); first > 0 {
		t.Fatalf("trimmed up to %d without a checkpoint", first)
	}
	bed.Journals.OnCheckpoint(nil)
	part = bed.Topic(t, "event", 0).Partition(0)
	awaitSaved(t, bed, "trim", func() bool { first, _ := part.Bounds(); return first > 0 })
	crash(t, bed)
	if last := lastOf(t, bed); last != 599 {
		t.Fatalf("last sequence %d, want 599", last)
	}
}
