package api

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"isthmus/core"
	"isthmus/core/engine"
)

// Limits of one look at messages.
const (
	peekDefault = 10
	peekMost    = 1000
	peekBytes   = 4 << 20 // of entries read
	peekBody    = 64 << 10
)

// peek shows messages of one partition without consuming them: from an offset, or from where a group stands.
func (h *handler) peek(q *request) (any, error) {
	t, err := q.topic()
	if err != nil {
		return nil, err
	}
	partition, err := q.number("partition", 0, int64(t.Logs())-1)
	if err != nil {
		return nil, err
	}
	p := t.Partition(int32(partition))
	count, err := q.number("count", peekDefault, peekMost)
	if err != nil {
		return nil, err
	}
	first, _ := p.Bounds()
	from, err := q.number("offset", first, 1<<62)
	if err != nil {
		return nil, err
	}
	if name := q.URL.Query().Get("group"); name != "" {
		g, err := t.Group(name)
		if err != nil {
			return nil, err
		}
		from = g.Mark(p.Index())
	}
	return h.messages(q, p, from, int(count))
}

// number reads a number of the query between 0 and most.
func (q *request) number(name string, missing, most int64) (int64, error) {
	s := q.URL.Query().Get(name)
	if s == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%s=%.40q is not a number from 0 to %d: %w", name, s, most, core.ErrInvalid)
	}
	return n, nil
}

func (h *handler) messages(q *request, p *engine.Partition, from core.Offset, count int) ([]Message, error) {
	ms := []Message{}
	for budget := peekBytes; len(ms) < count && budget > 0; {
		es, err := p.Read(q.Context(), from, count-len(ms), budget)
		if err != nil || len(es) == 0 {
			return ms, err
		}
		for i := range es {
			ms = h.appendMessages(ms, p.Index(), &es[i], from, count)
			budget -= core.EntrySize(&es[i])
		}
		from = es[len(es)-1].End()
	}
	return ms, nil
}

// appendMessages appends those of an entry that lie at or behind from, until there are count.
func (h *handler) appendMessages(ms []Message, partition int32, e *core.Entry, from core.Offset, count int) []Message {
	inside, err := h.eng.Messages(e, nil)
	for i := range int(e.Count) {
		o := e.Base + core.Offset(i)
		if o < from || len(ms) >= count {
			continue
		}
		m := Message{Partition: partition, Offset: o, Format: e.Format.String(), Committed: time.UnixMilli(e.Commit).UTC(), Encoding: "text"}
		if err != nil {
			m.Problem = err.Error()
		} else {
			m.fill(&inside[i])
		}
		ms = append(ms, m)
	}
	return ms
}

func (m *Message) fill(c *core.Message) {
	if c.HasKey {
		key := string(c.Key)
		m.Key = &key
	}
	m.OrderingKey, m.Tag, m.Address, m.Producer = string(c.OrderingKey), c.Tag, c.Address, c.Producer
	for _, p := range append(c.Properties[:len(c.Properties):len(c.Properties)], c.Routed...) {
		m.Properties = append(m.Properties, Property{p.Key, p.Value})
	}
	m.Published = time.UnixMilli(c.PublishTime).UTC()
	m.Size = len(c.Body)
	body := c.Body
	if m.Cut = len(body) > peekBody; m.Cut {
		body = body[:peekBody]
	}
	if utf8.Valid(body) {
		m.Body = string(body)
	} else {
		m.Body, m.Encoding = base64.StdEncoding.EncodeToString(body), "base64"
	}
}
