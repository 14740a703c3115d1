package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/journal"
	"isthmus/core/journal/disk"
	"isthmus/core/meta"
	metas "isthmus/core/meta/memory"
)

// flipStep is how far apart the flipped bytes are, but for the first and last ones of each file.
const flipStep = 211

// I1, I7: one bit of a closed data folder is wrong, anywhere in a journal. Either every message is there as it was, or the
// damage is told, and by the name of the file; nothing wrong is served, nothing is missing in silence.
func TestI1_I7_FlippedBitsAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrashWorld(t, flipSeed, false)
		defer func() { w.kill() }()
		if w.mode != disk.Fsync || !w.dedup || w.parks {
			t.Fatal("the life of another seed is wanted: with every message synced, a view and nothing that comes by itself")
		}
		if err := w.work(60, false); err != nil {
			t.Fatal(err)
		}
		w.kill()
		if err := w.look(); err != nil {
			t.Fatal(err)
		}
		for _, l := range w.logs {
			topic, err := w.eng.Topic(core.TopicName{Tenant: "public", Namespace: "default", Name: l.topic})
			if err != nil {
				t.Fatal(err)
			}
			l.first, _ = topic.Partition(l.index).Bounds()
		}
		whole, store := w.disk, w.meta.Store
		type place struct {
			name string
			at   int64
		}
		var places []place
		whole.Files(func(name string, data []byte) {
			at := rand.New(rand.NewPCG(1, uint64(len(places)))).Int64N(flipStep)
			for i := range int64(len(data)) {
				if i < 160 || i >= int64(len(data))-64 || i%flipStep == at {
					places = append(places, place{name, i})
				}
			}
		})
		told := map[bool]int{}
		for i, p := range places {
			w.disk, w.meta = whole.Clone(1), &crashMeta{Store: cloneMeta(t, store), power: whole}
			w.meta.power = w.disk
			if err := w.disk.Flip(p.name, p.at, 1<<(i%8)); err != nil {
				t.Fatal(err)
			}
			said, err := w.readFlipped(p.name)
			if err != nil {
				t.Fatalf("%s, byte %d of: %v", p.name, p.at, err)
			}
			told[said]++
		}
		if told[true] < 100 || told[false] < 100 {
			t.Fatalf("told %d times of %d: the test proves less than it says", told[true], len(places))
		}
		t.Logf("%d bytes flipped, %d told", len(places), told[true])
	})
}

const flipSeed = 18

func cloneMeta(t *testing.T, from meta.Store) meta.Store {
	to := metas.New()
	for _, b := range meta.Buckets() {
		var ws []meta.Write
		if err := from.Load(b, func(key string, v []byte) error {
			ws = append(ws, meta.Write{Bucket: b, Key: key, Value: append([]byte{}, v...)})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := to.Apply(ws); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// readFlipped starts an engine and reads everything. told: it said what is damaged.
func (w *crashWorld) readFlipped(file string) (told bool, err error) {
	defer w.kill()
	if err := w.start(); err != nil {
		return named(err, file)
	}
	w.downAt.Store(0)
	for _, l := range w.logs {
		topic, err := w.eng.Topic(core.TopicName{Tenant: "public", Namespace: "default", Name: l.topic})
		if err != nil {
			said, err := named(err, file)
			if err != nil {
				return said, err
			}
			told = true
			continue
		}
		said, err := l.readWhole(w, topic.Partition(l.index), file)
		if err != nil {
			return false, fmt.Errorf("%s/%d: %w", l.topic, l.index, err)
		}
		told = told || said
	}
	time.Sleep(time.Millisecond)
	return told, nil
}

// named wants an error to be of damage, and to name the file.
func named(err error, file string) (bool, error) {
	checkpoint := strings.TrimSuffix(path.Base(file), ".view") // named with its journal
	if !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), file) && !strings.Contains(err.Error(), checkpoint) {
		return false, fmt.Errorf("not named: %w", err)
	}
	return true, nil
}

// readWhole wants all that was acknowledged, from first to last, or damage.
func (l *crashLog) readWhole(w *crashWorld, p *engine.Partition, file string) (told bool, err error) {
	next, end := p.Bounds()
	if end != l.end {
		return false, fmt.Errorf("ends at %d, not %d", end, l.end)
	}
	if next > l.first {
		return false, fmt.Errorf("begins at %d, not %d", next, l.first)
	}
	defer func() {
		for _, s := range l.sent {
			s.found = false
		}
	}()
	for last := int64(0); next < end; {
		es, err := p.Read(w.t.Context(), next, 100, 1<<20)
		if err != nil {
			return named(err, file)
		}
		for i := range es {
			if err := l.found(&es[i], next, last, w.mode); err != nil {
				return false, err
			}
			next, last = es[i].End(), es[i].SeqLow
		}
		if len(es) == 0 && !l.thinned(next, end) {
			return false, fmt.Errorf("nothing at offset %d", next)
		}
		if len(es) == 0 {
			break
		}
	}
	return false, nil
}

// I7: a file that is missing at the front is no trimmed one.
func TestI7_AMissingFirstSegmentIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrashWorld(t, 13, true)
		defer func() { w.kill() }()
		if err := w.work(30, false); err != nil {
			t.Fatal(err)
		}
		w.kill()
		var first string
		w.disk.Files(func(name string, _ []byte) {
			if first == "" && strings.HasSuffix(name, ".seg") {
				first = name
			}
		})
		if err := w.disk.Remove(first); err != nil {
			t.Fatal(err)
		}
		if err := w.start(); err != nil {
			t.Fatal(err)
		}
		if err := w.eng.Health(); !errors.Is(err, journal.ErrDamaged) {
			t.Fatalf("%s is missing: %v", first, err)
		}
	})
}
