package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
)

// What metadata holds of a group: its record and a cursor for each partition.

func (g *Group) key() string { return g.topic.name.String() + separator + g.name }

func (gp *groupPart) key() string { return gp.group.key() + separator + strconv.Itoa(int(gp.p.index)) }

// place sets the cursor of a partition without a runner.
func (gp *groupPart) place(r meta.CursorRecord) {
	gp.mu.Lock()
	defer gp.mu.Unlock()
	gp.mu.cursor, gp.mu.committed = r.Cursor, r.Committed
	gp.mark.Store(r.Cursor.Next)
}

// collect adds the cursor to a metadata transaction if it changed.
func (gp *groupPart) collect(b *batch) {
	gp.mu.Lock()
	defer gp.mu.Unlock()
	v := gp.mu.version
	if v == gp.mu.saved || !gp.group.durable {
		return
	}
	rec := meta.CursorRecord{Committed: gp.mu.committed, Cursor: gp.mu.cursor}
	b.add(meta.Write{Bucket: meta.Cursors, Key: gp.key(), Value: rec.Encode()}, func() {
		gp.mu.Lock()
		defer gp.mu.Unlock()
		gp.mu.saved = v
	})
}

func (g *Group) collect(b *batch) {
	if !g.durable {
		return
	}
	for _, gp := range g.parts() {
		gp.collect(b)
	}
	g.roster.collect(g, b)
}

func (g *Group) record() meta.Write {
	rec := meta.GroupRecord{Mode: uint8(g.Mode()), Members: g.Members(), Idle: g.lull.record()}
	return meta.Write{Bucket: meta.Groups, Key: g.key(), Value: meta.EncodeJSON(rec)}
}

// loadGroups puts the groups and cursors of the metadata store into their topics.
func (e *Engine) loadGroups() error {
	if err := e.cfg.Meta.Load(meta.Groups, e.loadGroup); err != nil {
		return fmt.Errorf("load groups: %w", err)
	}
	if err := e.cfg.Meta.Load(meta.Cursors, e.loadCursor); err != nil {
		return fmt.Errorf("load cursors: %w", err)
	}
	return nil
}

func (e *Engine) loadGroup(key string, value []byte) error {
	topic, name, _ := strings.Cut(key, separator)
	t, err := e.topicOfKey(topic)
	if t == nil {
		return err
	}
	var rec meta.GroupRecord
	if err := meta.DecodeJSON(value, &rec); err != nil {
		return fmt.Errorf("group %q: %w", key, err)
	}
	g := newGroup(t, name, true)
	g.mu.mode = core.Mode(rec.Mode)
	g.roster.presume(rec.Members, e.now())
	g.lull.restore(rec.Idle)
	t.mu.groups[name], t.mu.sorted = g, nil
	return nil
}

// loadCursor never lets a cursor be ahead of its log: messages would be taken for acknowledged that are not there yet.
func (e *Engine) loadCursor(key string, value []byte) error {
	parts := strings.Split(key, separator)
	if len(parts) != 3 {
		return fmt.Errorf("cursor key %q: %w", key, core.ErrInvalid)
	}
	t, err := e.topicOfKey(parts[0])
	if t == nil {
		return err
	}
	i, err := strconv.Atoi(parts[2])
	if err != nil || t.Partition(int32(i)) == nil || t.mu.groups[parts[1]] == nil {
		return nil // of a group or partition that is no more
	}
	rec, err := meta.DecodeCursor(value)
	if err != nil {
		return fmt.Errorf("cursor %q: %w", key, err)
	}
	gp := t.mu.groups[parts[1]].parts()[i]
	first, end := gp.p.Bounds()
	if rec.Cursor.Next > end {
		e.cfg.Log.Error("cursor was ahead of its log", "topic", parts[0], "group", parts[1], "partition", i,
			"offset", rec.Cursor.Next, "end", end)
		rec.Cursor = core.Cursor{Next: end}
		gp.mu.version++ // or it would be right again, and wrong, when the log has grown
		gp.group.changed()
	}
	rec.Cursor.AckThrough(first)
	gp.place(rec)
	return nil
}

func (e *Engine) topicOfKey(key string) (*Topic, error) {
	n, err := core.ParseTopicName(key, "", "")
	if err != nil {
		return nil, err
	}
	t, err := e.Topic(n)
	if errors.Is(err, core.ErrTopicNotFound) || errors.Is(err, journal.ErrDamaged) {
		return nil, nil // deleted meanwhile, or out of service
	}
	return t, err
}
