package api

import (
	"fmt"

	"isthmus/core"
	"isthmus/core/engine"
)

func (h *handler) listTopics(q *request) (any, error) {
	rows := []Topic{}
	for _, t := range h.eng.Topics() {
		if h.may.Allow(q.principal, q.action, t.Name().String()) == nil {
			rows = append(rows, topicRow(t, t.Info()))
		}
	}
	for n, err := range h.eng.Damaged() {
		if h.may.Allow(q.principal, q.action, n.String()) == nil {
			rows = append(rows, Topic{Name: n.String(), Problem: err.Error()})
		}
	}
	return rows, nil
}

func topicRow(t *engine.Topic, i engine.TopicInfo) Topic {
	row := Topic{
		Name: t.Name().String(), Partitions: t.Partitions(), Declared: i.Declared, Messages: i.Messages, Bytes: i.Bytes,
		Groups: len(t.Groups()), Backlog: i.Backlog,
	}
	if i.Full != nil {
		row.Problem = i.Full.Error()
	}
	return row
}

func policyOf(p engine.Policy, t *engine.Topic) Policy {
	out := Policy{
		RetentionSeconds: p.Retention.Age.Seconds(), RetentionBytes: p.Retention.Size, TTLSeconds: p.TTL.Seconds(),
		BacklogSeconds: p.Backlog.Age.Seconds(), BacklogBytes: p.Backlog.Size,
		GroupExpiry: p.GroupExpiry.Seconds(), Deduplication: t.Deduplicates(),
	}
	if out.BacklogSeconds > 0 || out.BacklogBytes > 0 {
		out.WhenFull = p.Backlog.WhenFull.String()
	}
	return out
}

func (h *handler) showTopic(q *request) (any, error) {
	t, err := q.topic()
	if err != nil {
		return nil, err
	}
	i := t.Info()
	d := TopicDetail{Topic: topicRow(t, i), Placement: "client", Names: i.Names, Policy: policyOf(i.Policy, t), Members: []Group{}}
	if i.ByKey {
		d.Placement = "key"
	}
	for i := range t.Logs() {
		p := t.Partition(i)
		first, next := p.Bounds()
		d.Logs = append(d.Logs, Partition{Index: i, Number: p.Number(), First: first, Next: next, Bytes: p.Bytes()})
	}
	for _, g := range t.Groups() {
		d.Members = append(d.Members, groupRow(g, g.Info()))
	}
	return d, nil
}

func (h *handler) createTopic(q *request) (any, error) {
	n, err := q.name()
	if err != nil {
		return nil, err
	}
	var in CreateTopic
	if err := q.body(&in); err != nil {
		return nil, err
	}
	spec := engine.TopicSpec{Partitions: in.Partitions, ByKey: in.Placement == "key"}
	if in.Placement != "" && in.Placement != "key" && in.Placement != "client" {
		return nil, fmt.Errorf("placement %.40q: client or key: %w", in.Placement, core.ErrInvalid)
	}
	_, err = h.eng.CreateTopic(n, spec)
	return nil, err
}

func (h *handler) growTopic(q *request) (any, error) {
	n, err := q.name()
	if err != nil {
		return nil, err
	}
	var in GrowTopic
	if err := q.body(&in); err != nil {
		return nil, err
	}
	return nil, h.eng.GrowTopic(n, in.Partitions, in.AcceptRekey)
}

func (h *handler) emptyTopic(q *request) (any, error) {
	n, err := q.name()
	if err != nil {
		return nil, err
	}
	return nil, h.eng.EmptyTopic(n)
}

// deleteTopic refuses one that somebody uses, unless the query says force=true.
func (h *handler) deleteTopic(q *request) (any, error) {
	n, err := q.name()
	if err != nil {
		return nil, err
	}
	return nil, h.eng.DeleteTopic(n, q.URL.Query().Get("force") == "true")
}
