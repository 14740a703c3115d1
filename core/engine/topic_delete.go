package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// DeleteTopic ends a topic with its groups and everything in it: one metadata transaction, so that a crash leaves the topic
// or nothing of it. Its producers and consumers get ErrTopicNotFound, its partition numbers are never used again. The
// journals of a declared topic are removed; in a shared one its blocks age out. Without force a topic that clients
// use, or for which something is parked or a durable group has yet to read it, stays: ErrBusy.
func (e *Engine) DeleteTopic(n core.TopicName, force bool) error {
	t, err := e.Topic(n)
	if err != nil {
		return err
	}
	return t.delete(func() error {
		if force {
			return nil
		}
		return t.unused()
	})
}

// delete lets nothing more in, then asks whether the topic may go, then takes it out of metadata and registries, and then
// tells its consumers.
func (t *Topic) delete(may func() error) error {
	logs, err := t.takeOut(may)
	if err != nil {
		return fmt.Errorf("delete %s: %w", t.name, err)
	}
	t.eng.cfg.Log.Info("topic deleted", "topic", t.name.String())
	for _, g := range t.Groups() {
		g.changes.Lock()
		g.gone = true
		g.end(fmt.Errorf("%s was deleted: %w", t.name, core.ErrTopicNotFound))
		g.changes.Unlock()
	}
	for _, l := range logs {
		if err := l.remove(); err != nil {
			t.eng.cfg.Log.Error("journal of a deleted topic not removed, the next start tries again", "journal", l.name, "err", err)
		}
	}
	return nil
}

// takeOut returns the logs that were the topic's alone.
func (t *Topic) takeOut(may func() error) (own []*log, err error) {
	e := t.eng
	e.meta.Lock()
	defer e.meta.Unlock()
	if t.removed {
		return nil, core.ErrTopicNotFound
	}
	if err := may(); err != nil {
		return nil, err // nobody was refused for it
	}
	t.shut(fmt.Errorf("%s was deleted: %w", t.name, core.ErrTopicNotFound))
	for _, l := range t.logs() {
		l.drain()
	}
	if err = may(); err == nil {
		err = t.forget()
	}
	if err != nil {
		t.shut(nil)
		return nil, err
	}
	t.removed = true
	t.gate.Store(nil) // who waits there goes on, to be refused
	e.mu.Lock()
	delete(e.mu.topics, t.name)
	for p, name := range t.shape.Load().names {
		delete(e.mu.aliases, alias{p, name})
	}
	for _, p := range t.parts() {
		delete(e.mu.numbers, p.number)
	}
	e.mu.Unlock()
	for _, p := range t.parts() {
		p.log.tail.Lock()
		delete(p.log.tail.parts, p.number)
		p.log.tail.Unlock()
	}
	for _, l := range t.logs() {
		l.unpark(func(number uint32) bool { return l.part(number) == nil })
		if ownSet(t.record.Set) {
			e.dropLog(l)
			own = append(own, l)
		}
	}
	return own, nil
}

// shut has publishes refused from now on: what was accepted before is in a buffer when it returns. nil lets them in again.
func (t *Topic) shut(err error) {
	for _, p := range t.parts() {
		p.log.buf.Lock()
		p.dead = err
		p.log.buf.Unlock()
	}
}

// drain waits until what was accepted before is durable, and the views know of it, or the log has failed. A log that ends
// in order still writes what it has.
func (l *log) drain() {
	l.buf.Lock()
	defer l.buf.Unlock()
	last := l.buf.flying
	if l.buf.active.n > 0 {
		last = l.buf.active.number
	}
	for (l.buf.failed == nil || l.buf.failed == core.ErrClosed) && l.buf.landed < last { //nolint:errorlint // as in broken
		l.buf.settling++
		l.buf.space.Wait()
		l.buf.settling--
	}
}

// forget makes metadata forget the topic, and note where its shared journals stand: they stay, though maybe nobody is left
// in them. The caller holds e.meta, so no group comes or goes.
func (t *Topic) forget() error {
	var b batch
	for _, l := range t.logs() {
		if !ownSet(t.record.Set) && !l.volatile {
			l.collect(&b)
		}
	}
	b.writes = append(b.writes, meta.Write{Bucket: meta.Topics, Key: t.name.String()})
	for _, g := range t.Groups() {
		if g.durable {
			b.writes = append(b.writes, g.forgetting()...)
		}
	}
	if err := t.eng.cfg.Meta.Apply(b.writes); err != nil {
		return err
	}
	for _, f := range b.after {
		f()
	}
	return nil
}

// logs are those that the topic's partitions lie in, each once.
func (t *Topic) logs() (ls []*log) {
	for _, p := range t.parts() {
		if !slices.Contains(ls, p.log) {
			ls = append(ls, p.log)
		}
	}
	return ls
}

// unused tells why somebody may miss the topic.
func (t *Topic) unused() error {
	if t.users.Load() > 0 {
		return fmt.Errorf("producers are connected: %w", core.ErrBusy)
	}
	for _, p := range t.parts() {
		if n := p.Parked(); n > 0 {
			return fmt.Errorf("%d messages are parked for partition %d: %w", n, p.index, core.ErrBusy)
		}
	}
	for _, g := range t.Groups() {
		if len(g.Consumers()) > 0 || len(g.Members()) > 0 {
			return fmt.Errorf("group %s has consumers: %w", g.name, core.ErrBusy)
		}
		if n, _ := g.Backlog(); g.durable && n > 0 {
			return fmt.Errorf("group %s has %d messages to read: %w", g.name, n, core.ErrBusy)
		}
	}
	return nil
}

// Use says that a producer is connected to the topic, or no longer, for protocols in which one can be without publishing.
func (t *Topic) Use(on bool) {
	if on {
		t.users.Add(1)
	} else {
		t.users.Add(-1)
	}
}

const ownPrefix = "topic-"

// ownSet tells whether a set of journals is one topic's alone. Its name holds a partition number, so it is never used again.
func ownSet(set string) bool { return strings.HasPrefix(set, ownPrefix) }

// dropLog takes a log off the engine's list, so that nobody saves anything of it any more.
func (e *Engine) dropLog(l *log) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.mu.logs, l.name)
	if k := l.parking.Load(); k != nil {
		delete(e.mu.parkings, k.part.number)
	}
}

// remove ends a log that is off the list, then removes its journal, then makes metadata forget it. A crash in between
// leaves files that the next start removes.
func (l *log) remove() error {
	l.finish()
	l.running.Wait()
	l.refuse(fmt.Errorf("journal %s was removed: %w", l.name, core.ErrTopicNotFound))
	l.tail.Lock()
	for _, b := range l.tail.blocks {
		l.eng.tail.Add(-int64(len(b.block.Bytes())))
	}
	l.tail.blocks = nil
	l.tail.Unlock()
	if err := l.journal.Close(); err != nil {
		return err
	}
	return l.eng.removeJournal(context.Background(), l.name)
}

func (e *Engine) removeJournal(ctx context.Context, name string) error {
	if r, ok := e.cfg.Journals.(journal.Remover); ok {
		if err := r.Remove(ctx, name); err != nil {
			return err
		}
	}
	e.meta.Lock()
	defer e.meta.Unlock()
	ws := []meta.Write{{Bucket: meta.Journals, Key: name}, {Bucket: meta.Parked, Key: name}, {Bucket: meta.Limits, Key: name}}
	for _, b := range []meta.Bucket{meta.Marks, meta.Checkpoints} {
		err := e.cfg.Meta.Load(b, func(key string, _ []byte) error {
			if strings.HasPrefix(key, name+separator) {
				ws = append(ws, meta.Write{Bucket: b, Key: key})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return e.cfg.Meta.Apply(ws)
}

// removeLeftovers removes the journals of topics that were deleted just before the last end.
func (e *Engine) removeLeftovers(ctx context.Context, topics map[core.TopicName]meta.TopicRecord) error {
	used := map[string]bool{}
	for n, rec := range topics {
		for i := range rec.Numbers {
			used[journalName(n, rec, i)] = true
		}
	}
	left := map[string]bool{}
	for _, b := range []meta.Bucket{meta.Journals, meta.Checkpoints} {
		err := e.cfg.Meta.Load(b, func(key string, _ []byte) error {
			if name, _, _ := strings.Cut(key, separator); ownSet(name) && !used[name] {
				left[name] = true
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("load journals: %w", err)
		}
	}
	var errs []error
	for name := range left {
		if err := e.removeJournal(ctx, name); err != nil {
			errs = append(errs, fmt.Errorf("remove journal %s of a deleted topic: %w", name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		e.cfg.Log.Error("leftovers stay", "err", err) // they harm nobody
	}
	return ctx.Err()
}
