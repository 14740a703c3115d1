package api

import (
	"errors"
	"fmt"

	"isthmus/core"
	"isthmus/core/engine"
)

func (h *handler) listGroups(q *request) (any, error) {
	rows := []Group{}
	for _, t := range h.eng.Topics() {
		for _, g := range t.Groups() {
			if h.may.Allow(q.principal, q.action, t.Name().String()+"#"+g.Name()) == nil {
				rows = append(rows, groupRow(g, g.Info()))
			}
		}
	}
	return rows, nil
}

func groupRow(g *engine.Group, i engine.GroupInfo) Group {
	return Group{
		Topic: g.Topic().Name().String(), Name: g.Name(), Mode: g.Mode().String(), Durable: g.Durable(), Consumers: len(i.Members),
		Backlog: i.Backlog, InFlight: i.InFlight, Oldest: i.OldestUnacked.Seconds(), Stall: i.Stall,
	}
}

func (h *handler) showGroup(q *request) (any, error) {
	g, err := q.group()
	if err != nil {
		return nil, err
	}
	i := g.Info()
	d := GroupDetail{Group: groupRow(g, i), Members: []Member{}}
	for _, p := range i.Parts {
		d.Logs = append(d.Logs, GroupPartition{
			Index: p.Index, Mark: p.Mark, Next: p.End, Backlog: p.Backlog, InFlight: p.InFlight, Waiting: p.Waiting, Holes: p.Holes,
			Holder: p.Holder, Attempts: p.Attempts, Oldest: p.OldestUnacked.Seconds(), Stall: p.Stall,
		})
	}
	for _, m := range i.Members {
		d.Members = append(d.Members, Member(m))
	}
	return d, nil
}

func (h *handler) createGroup(q *request) (any, error) {
	t, err := q.topic()
	if err != nil {
		return nil, err
	}
	name := q.PathValue("group")
	if err := h.may.Allow(q.principal, q.action, t.Name().String()+"#"+name); err != nil {
		return nil, err
	}
	var in CreateGroup
	if err := q.body(&in); err != nil {
		return nil, err
	}
	start := engine.Start{At: engine.Latest}
	switch in.At {
	case "", "latest":
	case "earliest":
		start.At = engine.Earliest
	default:
		return nil, fmt.Errorf("at %.40q: latest or earliest: %w", in.At, core.ErrInvalid)
	}
	_, err = t.BeginGroup(name, start)
	return nil, err
}

func (h *handler) deleteGroup(q *request) (any, error) {
	g, err := q.group()
	if err != nil {
		return nil, err
	}
	return nil, g.Topic().DeleteGroup(g.Name())
}

func (h *handler) resetGroup(q *request) (any, error) {
	g, err := q.group()
	if err != nil {
		return nil, err
	}
	var in ResetGroup
	if err := q.body(&in); err != nil {
		return nil, err
	}
	var to []func() error // so that nobody is disturbed for what cannot be
	err = eachPartition(g.Topic(), in.Partition, func(p *engine.Partition) error {
		at, err := in.offset(q, p)
		to = append(to, func() error { return g.Reset(p.Index(), at) })
		return err
	})
	if err != nil {
		return nil, err
	}
	return nil, g.ResetAll(func() (err error) {
		for _, reset := range to {
			err = errors.Join(err, reset())
		}
		return err
	})
}

// offset is where a group is moved to in a partition.
func (r *ResetGroup) offset(q *request, p *engine.Partition) (core.Offset, error) {
	first, next := p.Bounds()
	switch r.To {
	case "earliest":
		return first, nil
	case "latest":
		return next, nil
	case "offset":
		return r.Offset, nil
	case "time":
		return p.OffsetAt(q.Context(), r.Time.UnixMilli())
	}
	return 0, fmt.Errorf("to %.40q: earliest, latest, offset or time: %w", r.To, core.ErrInvalid)
}

func (h *handler) skipGroup(q *request) (any, error) {
	g, err := q.group()
	if err != nil {
		return nil, err
	}
	var in SkipGroup
	if err := q.body(&in); err != nil {
		return nil, err
	}
	if in.Messages <= 0 {
		return nil, fmt.Errorf("messages: how many: %w", core.ErrInvalid)
	}
	return nil, eachPartition(g.Topic(), in.Partition, func(p *engine.Partition) error { return g.Skip(p.Index(), in.Messages) })
}

// eachPartition calls f for one partition, or for all of the topic.
func eachPartition(t *engine.Topic, only *int32, f func(*engine.Partition) error) error {
	if only != nil {
		p := t.Partition(*only)
		if p == nil {
			return fmt.Errorf("%s has no partition %d: %w", t.Name(), *only, core.ErrInvalid)
		}
		return f(p)
	}
	for i := range t.Logs() {
		if err := f(t.Partition(i)); err != nil {
			return err
		}
	}
	return nil
}
