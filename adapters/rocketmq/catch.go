package rocketmq

import (
	"context"
	"errors"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

const (
	maxScan     = 4096 // messages that one run looks at for a filter
	scanEntries = 256  // of one read when there is a filter
	overhead    = 160  // bytes of a stored message beside body and properties, about
)

// catch is what one run of a pull found.
type catch struct {
	items  []item
	next   core.Offset // the first message that was not looked at
	more   bool        // the run ended before the log did
	bytes  int
	seen   int
	missed int // of these, what the filter refused
}

// item is one message to send: native when message is nil.
type item struct {
	entry   *core.Entry
	offset  core.Offset
	message *core.Message
}

// collect reads from p.from on, until the answer is full, enough was looked at, or the log ends.
func (c *catch) collect(ctx context.Context, eng *engine.Engine, d *decoded, p *pull) error {
	c.next = p.from
	entries := p.messages
	if !p.filter.all() {
		entries = scanEntries
	}
	now := time.Now().UnixMilli()
	for {
		_, end := p.part.Bounds()
		room := make([]core.Entry, 0, min(max(end-c.next, 0), int64(entries)))
		es, err := p.part.AppendEntries(ctx, room, c.next, entries, maxBytes)
		if errors.Is(err, core.ErrOffsetOutOfRange) {
			// Trimmed under the reader: the client goes on at the new start at once, which code 21 would delay by 10 s.
			c.next, _ = p.part.Bounds()
			c.more = true
			return nil
		}
		if err != nil {
			return err
		}
		if len(es) == 0 {
			return nil
		}
		for i := range es {
			if !c.take(eng, d, p, &es[i], now) {
				c.more = true
				return nil
			}
		}
		if len(c.items) >= p.messages { // do not read what take would refuse
			c.more = true
			return nil
		}
	}
}

// take looks at the messages of one entry; false when no more fit or enough was looked at.
func (c *catch) take(eng *engine.Engine, d *decoded, p *pull, e *core.Entry, now int64) bool {
	if len(c.items) >= p.messages || c.seen >= maxScan || max(e.Base, c.next) >= p.until {
		return false
	}
	if p.part.Expired(e, now) {
		c.seen++
		c.next = e.End()
		return true
	}
	if e.Format == core.FormatRocketMQ {
		return c.takeNative(p, e)
	}
	msgs, err := d.messages(eng, p.part.Number(), e)
	if err != nil {
		eng.Metrics().Dropped.WithLabelValues(protocol, "undecodable").Add(float64(e.Count))
		c.seen++
		c.next = e.End()
		return true
	}
	for o := max(e.Base, c.next); o < e.End(); o++ {
		if o >= p.until {
			return false
		}
		if m := &msgs[o-e.Base]; p.filter.wants(m) {
			if !c.fits(p, len(m.Body)+len(p.topic)) {
				return false
			}
			c.items = append(c.items, item{entry: e, offset: o, message: m})
		} else {
			c.missed++
		}
		c.seen++
		c.next = o + 1
	}
	return true
}

func (c *catch) takeNative(p *pull, e *core.Entry) bool {
	if !p.filter.all() {
		var n native
		if n.parse(e.Data) != nil || !p.filter.wantsNative(&n) {
			c.seen++
			c.missed++
			c.next = e.End()
			return true
		}
	}
	if !c.fits(p, len(e.Data)+len(p.topic)) {
		return false
	}
	c.items = append(c.items, item{entry: e, offset: e.Base})
	c.seen++
	c.next = e.End()
	return true
}

// fits makes room for a message of about this size. The first one always fits.
func (c *catch) fits(p *pull, size int) bool {
	if len(c.items) >= p.messages || len(c.items) > 0 && c.bytes+size+overhead > p.bytes {
		return false
	}
	if c.items == nil {
		c.items = make([]item, 0, p.messages)
	}
	c.bytes += size + overhead
	return true
}

// append encodes what was found.
func (c *catch) append(dst []byte, p *pull) []byte {
	var scratch []byte
	for i := range c.items {
		it := &c.items[i]
		st := wire.Stored{
			QueueID: p.queueID, QueueOffset: it.offset, PhysOffset: physOffset(p.part.Number(), it.offset), Topic: p.topic,
			Born: it.entry.PublishTime, StoreTime: it.entry.Commit, StoreHost: p.session.store,
		}
		if m := it.message; m != nil {
			st.Born = m.PublishTime
			scratch = fillForeign(&st, m, scratch)
		} else {
			var n native
			if n.parse(it.entry.Data) != nil {
				continue // damaged beyond what the journal's checksum sees; the offset moves on
			}
			scratch = fillNative(&st, &n, scratch)
		}
		dst = st.Append(dst)
	}
	return dst
}
