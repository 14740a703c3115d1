package fsck

import (
	"fmt"
	"strconv"
	"strings"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/meta"
	"isthmus/core/meta/bolt"
)

const separator = "\x00"

// catalog is what metadata says of the folder.
type catalog struct {
	topics      map[string]meta.TopicRecord
	places      map[uint32]place // by partition number
	journals    map[string]meta.JournalRecord
	limits      map[string]meta.LimitsRecord
	checkpoints map[string]meta.CheckpointRecord
	marks       map[string]mark // the first one of each journal
	damaged     bool
}

// place is what a partition number stands for.
type place struct {
	topic string
	index int32
}

type mark struct {
	seq  journal.Seq
	next []meta.PartitionOffset
}

// readCatalog takes in the whole records.
func readCatalog(found *bolt.Report, file string, r *Report) *catalog {
	c := &catalog{
		topics: map[string]meta.TopicRecord{}, places: map[uint32]place{}, journals: map[string]meta.JournalRecord{},
		limits: map[string]meta.LimitsRecord{}, checkpoints: map[string]meta.CheckpointRecord{}, marks: map[string]mark{},
		damaged: len(found.Damage) > 0,
	}
	for _, d := range found.Damage {
		r.add(Problem{Kind: "metadata", File: d.File, Position: d.Position, What: d.What})
	}
	for _, rec := range found.Records {
		if err := c.take(rec); err != nil {
			c.damaged = true
			r.add(Problem{Kind: "metadata", File: file, What: fmt.Sprintf("%s %q: %v", rec.Bucket, rec.Key, err)})
		}
	}
	return c
}

func (c *catalog) take(rec bolt.Record) (err error) {
	switch rec.Bucket {
	case meta.Topics:
		var t meta.TopicRecord
		if err = meta.DecodeJSON(rec.Value, &t); err == nil {
			c.topics[rec.Key] = t
			for i, n := range t.Numbers {
				c.places[n] = place{rec.Key, int32(i)}
			}
		}
	case meta.Journals:
		c.journals[rec.Key], err = meta.DecodeJournal(rec.Value)
	case meta.Limits:
		c.limits[rec.Key], err = meta.DecodeLimits(rec.Value)
	case meta.Checkpoints:
		var k meta.CheckpointRecord
		if err = meta.DecodeJSON(rec.Value, &k); err == nil {
			c.checkpoints[rec.Key] = k
		}
	case meta.Marks:
		err = c.takeMark(rec)
	case meta.Cursors:
		_, err = meta.DecodeCursor(rec.Value)
	case meta.Groups:
		err = meta.DecodeJSON(rec.Value, &meta.GroupRecord{})
	case meta.Counters, meta.Parked:
	}
	return err
}

func (c *catalog) takeMark(rec bolt.Record) error {
	name, seq, _ := strings.Cut(rec.Key, separator)
	n, err := strconv.ParseUint(seq, 16, 64)
	if err != nil {
		return err
	}
	m, err := meta.DecodeMark(rec.Value)
	if err != nil {
		return err
	}
	if old, ok := c.marks[name]; !ok || journal.Seq(n) < old.seq {
		c.marks[name] = mark{journal.Seq(n), m.Next}
	}
	return nil
}

// begins is the first block of a journal that must be there.
func (c *catalog) begins(name string) journal.Seq {
	if m, ok := c.marks[name]; ok {
		return m.seq
	}
	return 1
}

// names are the journals that topics lie in, whether metadata knows them or not.
func (c *catalog) names() map[string]string {
	names := map[string]string{}
	for topic, t := range c.topics {
		if n, err := core.ParseTopicName(topic, "", ""); err != nil || n.NonPersistent {
			continue
		}
		for slot := range max(1, t.Slots) {
			names[t.Set+"-"+strconv.Itoa(slot)] = topic
		}
	}
	return names
}

func (c *catalog) lost(number uint32, from, to core.Offset, atMost bool) Lost {
	p, ok := c.places[number]
	if !ok {
		p = place{fmt.Sprintf("(partition number %d of no topic)", number), 0}
	}
	return Lost{Topic: p.topic, Partition: p.index, From: from, To: to, AtMost: atMost}
}
