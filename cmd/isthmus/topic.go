package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"isthmus/adapters/http/api"
)

// topicCommand asks a running gateway about its topics, and changes them.
type topicCommand struct {
	List   topicList   `cmd:"" help:"List topics."`
	Show   topicShow   `cmd:"" help:"Show one topic: partitions, policy, groups."`
	Peek   topicPeek   `cmd:"" help:"Look at messages without consuming them."`
	Create topicCreate `cmd:"" help:"Create a topic."`
	Grow   topicGrow   `cmd:"" help:"Give a topic more partitions."`
	Reset  topicReset  `cmd:"" help:"Move every group of a topic to another place."`
	Skip   topicSkip   `cmd:"" help:"Let every group of a topic pass over messages."`
	Empty  topicEmpty  `cmd:"" help:"Drop all messages of a topic, for all groups."`
	Delete topicDelete `cmd:"" help:"Delete a topic with its groups and messages."`
}

type topicArg struct {
	Topic string `arg:"" help:"persistent://tenant/namespace/name, or a short name."`
}

func (a topicArg) path(more ...string) string {
	return api.Path(append([]string{"topics", a.Topic}, more...)...)
}

// Validate refuses a name that would be missing from the path.
func (a topicArg) Validate() error {
	if a.Topic == "" {
		return errors.New("the topic's name is empty")
	}
	return nil
}

type topicList struct{ remote }

// Run prints a row for each topic.
func (c *topicList) Run(ctx context.Context, s *streams) error {
	var ts []api.Topic
	if err := c.do(ctx, "GET", api.Path("topics"), nil, &ts); err != nil {
		return err
	}
	return c.print(s.out, ts, func(t *table) {
		t.heading("TOPIC", "PARTITIONS", "MESSAGES", "BYTES", "GROUPS", "BACKLOG", "PROBLEM")
		for _, x := range ts {
			t.row(x.Name, x.Partitions, x.Messages, bytesOf(x.Bytes), x.Groups, x.Backlog, orDash(x.Problem))
		}
	})
}

type topicShow struct {
	remote
	topicArg
}

// Run prints what is known of a topic.
func (c *topicShow) Run(ctx context.Context, s *streams) error {
	var d api.TopicDetail
	if err := c.do(ctx, "GET", c.path(), nil, &d); err != nil {
		return err
	}
	return c.print(s.out, d, func(t *table) {
		t.heading("TOPIC", "PLACEMENT", "MESSAGES", "BYTES", "DECLARED")
		t.row(d.Name, d.Placement, d.Messages, bytesOf(d.Bytes), d.Declared)
		if p := policyOf(d.Policy); p != "" {
			t.heading("POLICY")
			t.row(p)
		}
		t.heading("PARTITION", "NUMBER", "FIRST", "NEXT", "BYTES")
		for _, p := range d.Logs {
			t.row(p.Index, p.Number, p.First, p.Next, bytesOf(p.Bytes))
		}
		groupTable(t, d.Members)
	})
}

// policyOf says in a line what bounds the topic; "" where nothing does.
func policyOf(p api.Policy) string {
	var said []string
	say := func(name string, given bool, value any) {
		if given {
			said = append(said, fmt.Sprint(name, " ", value))
		}
	}
	say("retention age", p.RetentionSeconds > 0, age(p.RetentionSeconds))
	say("retention size", p.RetentionBytes > 0, Size(p.RetentionBytes))
	say("ttl", p.TTLSeconds > 0, age(p.TTLSeconds))
	say("backlog age", p.BacklogSeconds > 0, age(p.BacklogSeconds))
	say("backlog size", p.BacklogBytes > 0, Size(p.BacklogBytes))
	say("when full", p.BacklogSeconds > 0 || p.BacklogBytes > 0, p.WhenFull)
	say("group expiry", p.GroupExpiry > 0, age(p.GroupExpiry))
	say("deduplication", p.Deduplication, true)
	return strings.Join(said, ", ")
}

type topicPeek struct {
	remote
	topicArg
	Partition int32  `help:"Which partition; one at a time." default:"0"`
	Offset    *int64 `help:"From this offset; without it from the first one that is retained."`
	Group     string `help:"From where this group stands."`
	Count     int    `help:"How many messages." default:"10" short:"n"`
}

// Run prints messages.
func (c *topicPeek) Run(ctx context.Context, s *streams) error {
	q := url.Values{"partition": {strconv.Itoa(int(c.Partition))}, "count": {strconv.Itoa(c.Count)}}
	if c.Offset != nil {
		q.Set("offset", strconv.FormatInt(*c.Offset, 10))
	}
	if c.Group != "" {
		q.Set("group", c.Group)
	}
	var ms []api.Message
	if err := c.do(ctx, "GET", c.path("messages")+"?"+q.Encode(), nil, &ms); err != nil {
		return err
	}
	return c.print(s.out, ms, func(t *table) {
		t.heading("OFFSET", "COMMITTED", "FORMAT", "KEY", "TAG", "SIZE", "BODY")
		for _, m := range ms {
			t.row(m.Offset, m.Committed.Format(time.RFC3339), m.Format, keyOf(m), orDash(m.Tag), m.Size, bodyOf(m))
		}
	})
}

func keyOf(m api.Message) string {
	if m.Key == nil {
		return "-"
	}
	return strconv.Quote(*m.Key)
}

// bodyOf fits a line.
func bodyOf(m api.Message) string {
	switch {
	case m.Problem != "":
		return m.Problem
	case m.Encoding != "text":
		return fmt.Sprintf("(%d bytes, not text)", m.Size)
	case len(m.Body) > 60:
		return strconv.Quote(m.Body[:60]) + "…"
	}
	return strconv.Quote(m.Body)
}

type topicCreate struct {
	remote
	topicArg
	Partitions int32  `help:"0 = unpartitioned." default:"0"`
	Placement  string `help:"Who picks the partition of a keyed message." enum:"client,key" default:"client"`
}

// Run creates the topic.
func (c *topicCreate) Run(ctx context.Context) error {
	return c.do(ctx, "PUT", c.path(), api.CreateTopic{Partitions: c.Partitions, Placement: c.Placement}, nil)
}

type topicGrow struct {
	remote
	topicArg
	Partitions  int32 `help:"How many it shall have." required:""`
	AcceptRekey bool  `help:"Yes, keys move to other partitions: their order is not kept across the change."`
}

// Run grows the topic.
func (c *topicGrow) Run(ctx context.Context) error {
	return c.do(ctx, "POST", c.path("grow"), api.GrowTopic{Partitions: c.Partitions, AcceptRekey: c.AcceptRekey}, nil)
}

type topicReset struct {
	remote
	topicArg
	place
}

// Run moves every group.
func (c *topicReset) Run(ctx context.Context, s *streams) error {
	move, err := c.request()
	if err != nil {
		return err
	}
	return c.eachGroup(ctx, c.topicArg, func(g string) error {
		return c.do(ctx, "POST", c.path("groups", g, "reset"), move, nil)
	})
}

type topicSkip struct {
	remote
	topicArg
	Messages int64 `help:"How many, in each partition." required:""`
}

// Run lets every group pass over messages.
func (c *topicSkip) Run(ctx context.Context) error {
	return c.eachGroup(ctx, c.topicArg, func(g string) error {
		return c.do(ctx, "POST", c.path("groups", g, "skip"), api.SkipGroup{Messages: c.Messages}, nil)
	})
}

func (r *remote) eachGroup(ctx context.Context, a topicArg, f func(group string) error) error {
	var d api.TopicDetail
	if err := r.do(ctx, "GET", a.path(), nil, &d); err != nil {
		return err
	}
	for _, g := range d.Members {
		if err := f(g.Name); err != nil {
			return fmt.Errorf("group %s: %w", g.Name, err)
		}
	}
	return nil
}

type topicEmpty struct {
	remote
	topicArg
}

// Run drops what the topic holds.
func (c *topicEmpty) Run(ctx context.Context) error {
	return c.do(ctx, "POST", c.path("empty"), nil, nil)
}

type topicDelete struct {
	remote
	topicArg
	Force bool `help:"Also while clients are connected or groups have not read everything."`
}

// Run deletes the topic.
func (c *topicDelete) Run(ctx context.Context) error {
	return c.do(ctx, "DELETE", c.path()+"?force="+strconv.FormatBool(c.Force), nil, nil)
}
