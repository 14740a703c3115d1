package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/engine/enginetest"
	"isthmus/core/journal"
)

// watched is a journal store that counts the blocks its readers look at, and lets a test stand in their way.
type watched struct {
	journal.Store
	appended, blocks atomic.Int64
	gate             atomic.Pointer[func()] // called before each block
	fault            atomic.Pointer[error]  // what reading yields instead of blocks
}

type watchedJournal struct {
	journal.Journal
	store *watched
}

func (s *watched) Open(ctx context.Context, name string, epoch uint64, durable journal.Seq) (journal.Journal, error) {
	j, err := s.Store.Open(ctx, name, epoch, durable)
	if err != nil {
		return nil, err
	}
	return watchedJournal{j, s}, nil
}

func (j watchedJournal) Append(ctx context.Context, block []byte) (journal.Seq, error) {
	j.store.appended.Add(1)
	return j.Journal.Append(ctx, block)
}

func (j watchedJournal) Read(ctx context.Context, from journal.Seq, h journal.Hint) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for rec, err := range j.Journal.Read(ctx, from, journal.Hint{}) {
			if gate := j.store.gate.Load(); gate != nil {
				(*gate)()
			}
			j.store.blocks.Add(1)
			if fault := j.store.fault.Load(); fault != nil {
				err = errors.Join(err, *fault)
			}
			if err = errors.Join(err, ctx.Err()); err != nil {
				yield(journal.Record{}, err)
				return
			}
			if b, _ := journal.Header(rec.Block); h.Wants(b) && !yield(rec, nil) {
				return
			}
		}
	}
}

// coldBed is an engine whose tail cache holds next to nothing.
func coldBed(t testing.TB, change func(*engine.Config)) (*enginetest.Bed, *watched) {
	w := &watched{}
	bed := enginetest.New(t, func(c *engine.Config) {
		w.Store = c.Journals
		c.Journals, c.TailBytes, c.SaveEvery = w, 1, time.Hour
		if change != nil {
			change(c)
		}
	})
	return bed, w
}

// number publishes messages of a size whose bodies begin with their offset, to all partitions in turn: in blocks of a few
// rounds each.
func number(t testing.TB, bed *enginetest.Bed, topic *engine.Topic, rounds, size int) {
	t.Helper()
	const perBlock = 5
	p := newPublisher(bed.Engine)
	for from := 0; from < rounds; from += perBlock {
		open := make(chan struct{})
		bed.Journals.OnAppend(func(string, []byte) error { <-open; return nil }) // the first message's block; the others make up the next
		n := 0
		for i := from; i < min(from+perBlock, rounds); i++ {
			for j := range topic.Logs() {
				if err := p.Publish(topic.Partition(j), message("k", numbered(core.Offset(i), size)), 0); err != nil {
					t.Fatal(err)
				}
				n++
			}
		}
		close(open)
		for range n {
			receive(t, p.receipts, "receipt")
		}
	}
	bed.Journals.OnAppend(nil)
}

func numbered(o core.Offset, size int) string {
	s := fmt.Sprint(o, " ")
	return s + strings.Repeat("x", max(0, size-len(s)))
}

// followNumbered tells whether entries follow each other from an offset on, each with its own body, and where they end.
func followNumbered(at core.Offset, es []core.Entry) (core.Offset, error) {
	for i := range es {
		ms, err := core.DecodeNeutral(&es[i], nil)
		if err != nil {
			return at, err
		}
		if es[i].Base != at || !strings.HasPrefix(string(ms[0].Body), fmt.Sprint(at, " ")) {
			return at, fmt.Errorf("offset %d after %d, body %.20q", es[i].Base, at, ms[0].Body)
		}
		at = es[i].End()
	}
	return at, nil
}

func wantNumbered(t rapid.TB, at core.Offset, es []core.Entry) core.Offset {
	t.Helper()
	at, err := followNumbered(at, es)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestNearReadersShareAScanner(t *testing.T) {
	bed, w := coldBed(t, nil)
	topic := bed.Topic(t, "event", 4)
	const rounds = 1000
	number(t, bed, topic, rounds, 4<<10) // 16 MiB
	blocks := w.appended.Load()
	at := make([]core.Offset, 4)
	for at[0] < rounds-1 {
		for i := range at {
			es, err := topic.Partition(int32(i)).Read(t.Context(), at[i], 64, 1<<20)
			if err != nil || len(es) == 0 {
				t.Fatalf("partition %d offset %d: %d entries, %v", i, at[i], len(es), err)
			}
			at[i] = wantNumbered(t, at[i], es)
		}
	}
	if n := w.blocks.Load(); n > 2*blocks { // alone, each would read all of them
		t.Errorf("four readers had %d blocks read of %d", n, blocks)
	}
}

func TestLoneReaderGoesOnWhereItWas(t *testing.T) {
	bed, w := coldBed(t, func(c *engine.Config) { c.ColdBytes = 1 << 20 })
	topic := bed.Topic(t, "event", 4)
	const rounds = 1000
	number(t, bed, topic, rounds, 4<<10)
	blocks := w.appended.Load()
	for at := core.Offset(0); at < rounds; {
		es, err := topic.Partition(2).Read(t.Context(), at, 10, 1<<20)
		if err != nil || len(es) == 0 {
			t.Fatalf("offset %d: %d entries, %v", at, len(es), err)
		}
		at = wantNumbered(t, at, es)
	}
	if n := w.blocks.Load(); n > blocks*5/4 {
		t.Errorf("%d blocks were read of %d", n, blocks)
	}
}

func TestI8_ColdCacheStaysInItsBudget(t *testing.T) {
	reg := prometheus.NewRegistry()
	bed, w := coldBed(t, func(c *engine.Config) { c.ColdBytes, c.TailBytes, c.Registerer = 1<<20, 1<<20, reg })
	topic := bed.Topic(t, "event", 3)
	number(t, bed, topic, 400, 8<<10)
	var kept []core.Entry
	for at := core.Offset(0); at < 300; at += 7 {
		for i := range int32(3) {
			es, err := topic.Partition(i).Read(t.Context(), at, 5, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			wantNumbered(t, at, es)
			if i == 0 {
				kept = append(kept, es[0])
			}
			if n := gathered(t, reg, "isthmus_cold_cache_bytes"); n > 1<<20 || n == 0 {
				t.Fatalf("the cold cache holds %v bytes", n)
			}
		}
	}
	for i := range kept { // long evicted, and still whole
		wantNumbered(t, core.Offset(7*i), kept[i:i+1])
	}
	before := w.blocks.Load()
	if es, err := topic.Partition(1).Read(t.Context(), 399, 1, 1<<20); err != nil || len(es) != 1 || w.blocks.Load() != before {
		t.Errorf("the newest message is not in the tail any more: %d entries, %v", len(es), err)
	}
}

// Who waits for another's scan is served by it, and by one of its own when the other gave up.
func TestScanCancelledInTheMiddle(t *testing.T) {
	bed, w := coldBed(t, nil)
	topic := bed.Topic(t, "event", 1)
	number(t, bed, topic, 50, 100)
	part := topic.Partition(0)
	entered, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	stop := func() { once.Do(func() { close(entered); <-open }) }
	w.gate.Store(&stop)
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := part.Read(ctx, 0, 10, 1<<20)
		first <- err
	}()
	receive(t, entered, "first reader in the journal")
	go func() {
		es, err := part.Read(t.Context(), 0, 10, 1<<20)
		if err == nil && len(es) != 10 {
			err = fmt.Errorf("%d entries", len(es))
		}
		second <- err
	}()
	impatient, leave := context.WithCancel(t.Context())
	leave()
	if _, err := part.Read(impatient, 0, 10, 1<<20); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader whose context has ended: %v", err)
	}
	cancel()
	close(open)
	if err := receive(t, first, "first reader"); !errors.Is(err, context.Canceled) {
		t.Errorf("first reader: %v", err)
	}
	if err := receive(t, second, "second reader"); err != nil {
		t.Errorf("second reader: %v", err)
	}
}

// What is trimmed while a reader looks for it is out of range, and never passed over in silence.
func TestTrimUnderAColdReader(t *testing.T) {
	now := time.Now()
	bed, w := coldBed(t, func(c *engine.Config) {
		c.SaveEvery = 5 * time.Millisecond
		c.Now = func() time.Time { return now.Add(time.Hour) }
	})
	topic := bed.Topic(t, "event", 1)
	g := begin(t, topic, "g", engine.Latest)
	fill(t, bed, topic, 300)
	part := topic.Partition(0)
	entered, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	stop := func() { once.Do(func() { close(entered); <-open }) }
	w.gate.Store(&stop)
	read := make(chan error, 1)
	go func() {
		es, err := part.Read(t.Context(), 0, 10, 1<<20)
		if err == nil && (len(es) == 0 || es[0].Base != 0) {
			err = fmt.Errorf("%d entries instead of offset 0", len(es))
		}
		read <- err
	}()
	receive(t, entered, "reader in the journal")
	g.Commit(0, 150)
	awaitSaved(t, bed, "trim", func() bool { first, _ := part.Bounds(); return first > 0 })
	close(open)
	if err := receive(t, read, "reader"); err != nil && !errors.Is(err, core.ErrOffsetOutOfRange) {
		t.Errorf("trimmed under the reader: %v", err)
	}
	if _, err := part.Read(t.Context(), 0, 10, 1<<20); !errors.Is(err, core.ErrOffsetOutOfRange) {
		t.Errorf("trimmed before the reader came, though it is cached: %v", err)
	}
	first, _ := part.Bounds()
	if es, err := part.Read(t.Context(), first, 10, 1<<20); err != nil || es[0].Base != first {
		t.Errorf("the first that is left: %v", err)
	}
}

// Readers at random places, of one log in two topics, beside a publisher: each sees what a plain slice would show.
func TestReadersSeeWhatWasPublished(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cold := rapid.SampledFrom([]int64{1, 64 << 10, 16 << 20}).Draw(rt, "cold")
		tail := rapid.SampledFrom([]int64{1, 32 << 10}).Draw(rt, "tail")
		bed, _ := coldBed(t, func(c *engine.Config) { c.ColdBytes, c.TailBytes = cold, tail })
		defer bed.Stop(t)
		topics := []*engine.Topic{bed.Topic(t, "a", 2), bed.Topic(t, "b", 1)}
		ends := map[*engine.Partition]core.Offset{}
		p := newPublisher(bed.Engine)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			topic := topics[rapid.IntRange(0, 1).Draw(rt, "topic")]
			part := topic.Partition(int32(rapid.IntRange(0, int(topic.Logs())-1).Draw(rt, "partition")))
			if rapid.Bool().Draw(rt, "publish") {
				n, size := rapid.IntRange(1, 20).Draw(rt, "n"), rapid.SampledFrom([]int{10, 3000, 40_000}).Draw(rt, "size")
				for range n {
					if err := p.Publish(part, message("k", numbered(ends[part], size)), 0); err != nil {
						rt.Fatal(err)
					}
					ends[part]++
				}
				for range n {
					receive(t, p.receipts, "receipt")
				}
				continue
			}
			from := rapid.Int64Range(0, ends[part]).Draw(rt, "from")
			most := rapid.IntRange(1, 50).Draw(rt, "most")
			bytes := rapid.SampledFrom([]int{1, 5000, 1 << 20}).Draw(rt, "bytes")
			es, err := part.Read(t.Context(), from, most, bytes)
			if err != nil || len(es) > most || (len(es) == 0) != (from == ends[part]) {
				rt.Fatalf("read of %d from %d, end %d: %d entries, %v", most, from, ends[part], len(es), err)
			}
			if len(es) > 1 && bytes == 1 {
				rt.Fatalf("%d entries where one fills the limit", len(es))
			}
			wantNumbered(rt, from, es)
		}
	})
}

// Many readers at once, near and far from each other, while the log grows: a race here is what -race is for.
func TestColdReadersBesidePublishers(t *testing.T) {
	bed, _ := coldBed(t, func(c *engine.Config) { c.ColdBytes, c.TailBytes = 256<<10, 64<<10 })
	topic := bed.Topic(t, "event", 3)
	number(t, bed, topic, 100, 2000)
	var wg sync.WaitGroup
	for i := range 6 {
		part := topic.Partition(int32(i % 3))
		wg.Go(func() {
			for at := core.Offset(i * 10); at < 300; {
				es, err := part.Read(t.Context(), at, 7, 1<<20)
				if err == nil {
					at, err = followNumbered(at, es)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if len(es) == 0 {
					more := make(chan struct{})
					part.Await(at, func() { close(more) })
					<-more
				}
			}
		})
	}
	p := newPublisher(bed.Engine)
	for i := 100; i < 300; i++ {
		for j := range int32(3) {
			p.publish(t, topic.Partition(j), "k", numbered(core.Offset(i), 2000))
		}
	}
	wg.Wait()
}
