package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"isthmus/adapters/http/api"
)

// groupCommand asks a running gateway about its groups, and changes them.
type groupCommand struct {
	List   groupList   `cmd:"" help:"List groups: backlog, in flight, why one stalls."`
	Show   groupShow   `cmd:"" help:"Show one group: members, partitions, who holds what."`
	Create groupCreate `cmd:"" help:"Begin a group before its first consumer."`
	Reset  groupReset  `cmd:"" help:"Move a group to another place."`
	Skip   groupSkip   `cmd:"" help:"Let a group pass over messages."`
	Delete groupDelete `cmd:"" help:"Delete a group."`
}

type groupArg struct {
	topicArg
	Group string `arg:"" help:"Name of the group (a Pulsar subscription, a RocketMQ consumer group, the g of $share/g)."`
}

func (a groupArg) path(more ...string) string {
	return a.topicArg.path(append([]string{"groups", a.Group}, more...)...)
}

// place is where to move a group.
type place struct {
	To        string `help:"earliest, latest, an offset, a time as 2006-01-02T15:04:05Z, or an age as 90m or 7d." required:""`
	Partition *int32 `help:"Only this partition."`
}

// request reads what --to says.
func (p place) request() (r api.ResetGroup, err error) {
	r.Partition = p.Partition
	switch {
	case p.To == "earliest" || p.To == "latest":
		r.To = p.To
		return r, nil
	}
	if _, err := fmt.Sscanf(p.To+"\n", "%d\n", &r.Offset); err == nil {
		r.To = "offset"
		return r, nil
	}
	r.To = "time"
	if age, ok := parseDuration(p.To); ok {
		r.Time = time.Now().Add(-time.Duration(age))
		return r, nil
	}
	if r.Time, err = time.Parse(time.RFC3339, p.To); err != nil {
		return r, errors.New("isthmus: --to: neither earliest, latest, an offset, a time (2006-01-02T15:04:05Z) nor an age (90m, 7d): " + p.To)
	}
	return r, nil
}

// Validate refuses a name that would be missing from the path.
func (a groupArg) Validate() error {
	if a.Group == "" {
		return errors.New("the group's name is empty")
	}
	return a.topicArg.Validate()
}

type groupList struct {
	remote
	Topic string `arg:"" optional:"" help:"Only the groups of this topic."`
}

// Run prints a row for each group.
func (c *groupList) Run(ctx context.Context, s *streams) error {
	gs, err := c.groups(ctx)
	if err != nil {
		return err
	}
	return c.print(s.out, gs, func(t *table) { groupTable(t, gs) })
}

func (c *groupList) groups(ctx context.Context) (gs []api.Group, err error) {
	if c.Topic == "" {
		return gs, c.do(ctx, "GET", api.Path("groups"), nil, &gs)
	}
	var d api.TopicDetail
	err = c.do(ctx, "GET", topicArg{c.Topic}.path(), nil, &d)
	return d.Members, err
}

func groupTable(t *table, gs []api.Group) {
	t.heading("GROUP", "TOPIC", "MODE", "CONSUMERS", "BACKLOG", "IN FLIGHT", "OLDEST", "STALL")
	for _, g := range gs {
		t.row(g.Name, g.Topic, g.Mode, g.Consumers, g.Backlog, g.InFlight, age(g.Oldest), orDash(g.Stall))
	}
}

func age(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

type groupShow struct {
	remote
	groupArg
}

// Run prints what is known of a group.
func (c *groupShow) Run(ctx context.Context, s *streams) error {
	var d api.GroupDetail
	if err := c.do(ctx, "GET", c.path(), nil, &d); err != nil {
		return err
	}
	return c.print(s.out, d, func(t *table) {
		groupTable(t, []api.Group{d.Group})
		t.heading("PARTITION", "MARK", "END", "BACKLOG", "IN FLIGHT", "WAITING", "HOLES", "ATTEMPTS", "OLDEST", "HELD BY", "STALL")
		for _, p := range d.Logs {
			t.row(p.Index, p.Mark, p.Next, p.Backlog, p.InFlight, p.Waiting, p.Holes, p.Attempts, age(p.Oldest), orDash(p.Holder), orDash(p.Stall))
		}
		t.heading("MEMBER", "PROTOCOL", "PRIORITY", "PERMITS", "IN FLIGHT", "DELIVERED", "HOLDS")
		for _, m := range d.Members {
			t.row(m.Name, m.Protocol, m.Priority, m.Permits, m.InFlight, m.Delivered, holds(m))
		}
	})
}

func holds(m api.Member) string {
	var b strings.Builder
	for i, p := range m.Holds {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, p)
	}
	if m.Slots != "" {
		b.WriteString(" slots " + m.Slots)
	}
	return orDash(strings.TrimSpace(b.String()))
}

type groupCreate struct {
	remote
	groupArg
	At string `help:"Where it begins." enum:"earliest,latest" default:"latest"`
}

// Run begins the group.
func (c *groupCreate) Run(ctx context.Context) error {
	return c.do(ctx, "PUT", c.path(), api.CreateGroup{At: c.At}, nil)
}

type groupReset struct {
	remote
	groupArg
	place
}

// Run moves the group.
func (c *groupReset) Run(ctx context.Context) error {
	move, err := c.request()
	if err != nil {
		return err
	}
	return c.do(ctx, "POST", c.path("reset"), move, nil)
}

type groupSkip struct {
	remote
	groupArg
	Messages  int64  `help:"How many, in each partition." required:""`
	Partition *int32 `help:"Only this partition."`
}

// Run lets the group pass over messages.
func (c *groupSkip) Run(ctx context.Context) error {
	return c.do(ctx, "POST", c.path("skip"), api.SkipGroup{Messages: c.Messages, Partition: c.Partition}, nil)
}

type groupDelete struct {
	remote
	groupArg
}

// Run deletes the group.
func (c *groupDelete) Run(ctx context.Context) error { return c.do(ctx, "DELETE", c.path(), nil, nil) }
