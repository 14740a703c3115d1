package fsck_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/engine"
	"isthmus/core/fsck"
	"isthmus/core/journal/disk"
	"isthmus/core/meta/bolt"
)

// gateway is an engine on a data folder.
type gateway struct {
	*engine.Engine
	stop func()
}

func start(t *testing.T, dir string) *gateway {
	t.Helper()
	journals, err := disk.New(disk.Options{Dir: filepath.Join(dir, "journals"), SegmentMin: 4 << 10, SegmentMax: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(filepath.Join(dir, "meta.db"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{
		Journals: journals, Meta: store, SaveEvery: 10 * time.Millisecond,
		Defaults: engine.Defaults{Tenant: "public", Namespace: "default", AutoCreate: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	g := &gateway{Engine: e}
	g.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		g.stop = func() {}
	}
	t.Cleanup(func() { g.stop() })
	return g
}

var name = core.TopicName{Tenant: "public", Namespace: "default", Name: "t"}

func (g *gateway) topic(t *testing.T) *engine.Topic {
	t.Helper()
	topic, err := g.EnsureTopic(name, 2)
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// publish sends messages one after the other, in turn to both partitions, so that each is a block.
func (g *gateway) publish(t *testing.T, from, to int) (last [2]core.Offset) {
	t.Helper()
	topic := g.topic(t)
	done := make(chan engine.Receipt, 1)
	p := g.NewProducer("mqtt", func(rs []engine.Receipt) { done <- rs[0] })
	for i := from; i < to; i++ {
		m := core.Message{Body: fmt.Appendf(nil, "%d:%s", i, strings.Repeat("x", 300))}
		if err := p.Publish(topic.Partition(int32(i%2)), &core.Entry{Count: 1, PublishTime: 1, Data: m.AppendNeutral(nil)}, 1); err != nil {
			t.Fatal(err)
		}
		r := <-done
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		last[i%2] = r.Base
	}
	return last
}

type sink chan int

func (s sink) Deliver(ds []engine.Delivery) {
	for _, d := range ds {
		var n int
		ms, _ := core.DecodeNeutral(&d.Entry, nil)
		fmt.Sscanf(string(ms[0].Body), "%d:", &n)
		s <- n
	}
}
func (s sink) Active(int32, bool) {}
func (s sink) Detached(error)     {}

// consume returns what a group gets until the message `last` comes.
func (g *gateway) consume(t *testing.T, group string, last ...int) (got []int) {
	t.Helper()
	eg, err := g.topic(t).BeginGroup(group, engine.Start{At: engine.Earliest})
	if err != nil {
		t.Fatal(err)
	}
	s := make(sink, 1000)
	c, err := eg.Join(t.Context(), engine.Member{Protocol: "pulsar", Name: "c", Mode: core.Shared, Sink: s})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Leave()
	c.Permit(1 << 20)
	for len(last) > 0 {
		select {
		case n := <-s:
			got = append(got, n)
			last = slices.DeleteFunc(last, func(l int) bool { return l == n })
		case <-time.After(10 * time.Second):
			t.Fatalf("%v did not come, but %v", last, got)
		}
	}
	slices.Sort(got)
	return got
}

const messages = 60

func folder(t *testing.T) (dir string, segments []string) {
	t.Helper()
	dir = t.TempDir()
	g := start(t, dir)
	g.topic(t)
	if _, err := g.topic(t).BeginGroup("old", engine.Start{At: engine.Earliest}); err != nil {
		t.Fatal(err)
	}
	g.publish(t, 0, messages)
	g.stop()
	segments, err := filepath.Glob(filepath.Join(dir, "journals", "small-0", "*.seg"))
	if err != nil || len(segments) < 4 {
		t.Fatal(segments, err)
	}
	return dir, segments
}

func flip(t *testing.T, path string, find string, at int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if find != "" {
		at = int64(bytes.Index(b, []byte(find)))
	}
	if at < 0 {
		at += int64(len(b))
	}
	b[at] ^= 0x20
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// garble makes a text unreadable wherever it is.
func garble(t *testing.T, path, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte(text), []byte(strings.Repeat("?", len(text)))), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAWholeFolderIsWhole(t *testing.T) {
	dir, _ := folder(t)
	r, err := fsck.Check(t.Context(), dir)
	if err != nil || len(r.Problems) > 0 || len(r.Lost) > 0 {
		t.Fatalf("%v %+v", err, r)
	}
	if _, err := fsck.Check(t.Context(), dir+"/none"); err == nil {
		t.Fatal("a folder that is not there")
	}
}

// I1, I2, I7: whatever is broken: it is named with what it means, and after the repair the topic is in service, groups step
// over the hole, what is whole is there, and no offset is given again.
func TestI1_I2_I7_RepairedFoldersServe(t *testing.T) {
	for what, c := range map[string]struct {
		harm func(t *testing.T, dir string, segments []string)
		kind string
		lost []int // messages
		more bool  // others may be lost too
	}{
		"a record in the middle": {func(t *testing.T, _ string, s []string) { flip(t, findIn(t, s, "\n"+"20:"), "20:xxx", 0) }, "segment", []int{20}, false},
		"two in a row": {func(t *testing.T, _ string, s []string) {
			flip(t, findIn(t, s, "20:x"), "20:xxx", 0)
			flip(t, findIn(t, s, "21:x"), "21:xxx", 0)
		}, "segment", []int{20, 21}, false},
		"the last one":   {func(t *testing.T, _ string, s []string) { flip(t, findIn(t, s, "59:x"), "59:xxx", 0) }, "segment", []int{59}, false},
		"a header":       {func(t *testing.T, _ string, s []string) { flip(t, s[1], "", 10) }, "segment", nil, false},
		"the first file": {func(t *testing.T, _ string, s []string) { os.Remove(s[0]) }, "segment", []int{0, 1}, true},
		"the last file":  {func(t *testing.T, _ string, s []string) { os.Remove(s[len(s)-1]) }, "segment", []int{59}, true},
		"the fence": {func(t *testing.T, dir string, _ []string) {
			flip(t, filepath.Join(dir, "journals/small-0/fence"), "", 9)
		}, "fence", nil, false},
		"a journal's records": {func(t *testing.T, dir string, _ []string) { garble(t, filepath.Join(dir, "meta.db"), "small-0") }, "metadata", nil, true},
		"a meta page":         {func(t *testing.T, dir string, _ []string) { flip(t, filepath.Join(dir, "meta.db"), "", 40) }, "metadata", nil, false},
	} {
		t.Run(what, func(t *testing.T) {
			dir, segments := folder(t)
			c.harm(t, dir, segments)
			r, err := fsck.Check(t.Context(), dir)
			if err != nil || !r.Damaged() || !slices.ContainsFunc(r.Problems, func(p fsck.Problem) bool { return p.Kind == c.kind }) {
				t.Fatalf("%v %+v", err, r)
			}
			if len(c.lost) > 0 && (len(r.Lost) == 0 || r.Lost[0].Topic != name.String()) {
				t.Fatalf("nothing is called lost: %+v", r)
			}
			if _, err := fsck.Repair(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			if again, err := fsck.Check(t.Context(), dir); err != nil || again.Damaged() {
				t.Fatalf("after the repair: %v %+v", err, again)
			}
			g := start(t, dir)
			if err := g.Health(); err != nil {
				t.Fatal(err)
			}
			last := g.publish(t, messages, messages+2)
			if last[0] < messages/2 || last[1] < messages/2 {
				t.Fatalf("offsets %v are given again", last)
			}
			for _, group := range []string{"old", "new"} {
				got := g.consume(t, group, messages, messages+1)
				for i := range messages {
					lost := slices.Contains(c.lost, i)
					if has := slices.Contains(got, i); has == lost && !c.more {
						t.Fatalf("group %s got %v; message %d lost: %v", group, got, i, lost)
					}
				}
			}
			g.stop()
			if r, err := fsck.Check(t.Context(), dir); err != nil || r.Damaged() {
				t.Fatalf("after a run: %v %+v", err, r)
			}
		})
	}
}

// findIn returns the segment that holds a text.
func findIn(t *testing.T, segments []string, text string) string {
	t.Helper()
	for _, s := range segments {
		b, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(strings.TrimPrefix(text, "\n"))) {
			return s
		}
	}
	t.Fatalf("nobody has %q", text)
	return ""
}
