package journaltest

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"isthmus/core"
	"isthmus/core/journal"

	"pgregory.net/rapid"
)

// model is the journal as it should be: every block ever appended, by Seq from 1.
type model struct {
	t       *rapid.T
	j       journal.Journal
	blocks  []journal.Block
	next    map[uint32]core.Offset
	clock   int64
	trimmed journal.Seq    // nothing before it is promised
	gone    map[place]bool // extents that may have been thinned away; of a block without extents, partition 0
}

// place is an extent: Seq of its block, and partition.
type place struct {
	seq       journal.Seq
	partition uint32
}

// Model lets random appends, trims and restarts meet random hints. It appends much: a tenant that
// syncs in truth may want to run it without.
func Model(t *testing.T, s journal.Store, reopen func() journal.Store) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		name := fmt.Sprint("model-", run) // a journal of its own for each run
		m := &model{t: rt, next: map[uint32]core.Offset{}, trimmed: 1, gone: map[place]bool{}}
		m.open(s, name)
		defer func() { m.j.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"append": m.append,
			"trim":   m.trim,
			"read":   m.read,
			"thin":   m.thin,
			"reopen": func(*rapid.T) {
				m.j.Close()
				s = reopen()
				m.open(s, name)
			},
		})
	})
}

func (m *model) open(s journal.Store, name string) {
	var err error
	if m.j, err = s.Open(context.Background(), name, 1, journal.Seq(len(m.blocks))); err != nil {
		m.t.Fatalf("open with %d blocks: %v", len(m.blocks), err)
	}
}

func (m *model) append(t *rapid.T) {
	for range rapid.IntRange(1, 8).Draw(t, "blocks") {
		m.clock += rapid.Int64Range(0, 20).Draw(t, "ms")
		var es []journal.Extent
		for _, p := range rapid.SliceOfNDistinct(rapid.Uint32Range(0, 5), 0, 4, rapid.ID).Draw(t, "partitions") {
			count := rapid.Uint32Range(0, 3).Draw(t, "count")
			size := rapid.SampledFrom([]int{0, 1, 50, 700, 5000, 40000}).Draw(t, "size")
			es = append(es, journal.Extent{Partition: p, First: m.next[p], Count: count, Data: payload(p, m.next[p], size)})
			m.next[p] += core.Offset(count)
		}
		block := journal.AppendBlock(nil, 1, m.clock, es...)
		seq, err := m.j.Append(context.Background(), block)
		b, parseErr := journal.ParseBlock(block)
		if parseErr != nil {
			t.Fatal(parseErr)
		}
		m.blocks = append(m.blocks, b)
		if err != nil || seq != journal.Seq(len(m.blocks)) {
			t.Fatalf("append %d: seq %d, %v", len(m.blocks), seq, err)
		}
	}
}

func (m *model) trim(t *rapid.T) {
	before := journal.Seq(rapid.IntRange(0, len(m.blocks)+1).Draw(t, "before"))
	if err := m.j.Trim(context.Background(), before); err != nil {
		t.Fatal(err)
	}
	m.trimmed = max(m.trimmed, before)
	first, next, _, err := m.j.Bounds(context.Background())
	if err != nil || first > m.trimmed || next != journal.Seq(len(m.blocks)+1) {
		t.Fatalf("trimmed before %d of %d: bounds [%d, %d), %v", m.trimmed, len(m.blocks), first, next, err)
	}
}

// thin keeps whole extents: those whose next offset is no multiple of a number, and all that are empty.
func (m *model) thin(t *rapid.T) {
	j, ok := m.j.(journal.Thinner)
	if !ok {
		t.Skip("does not thin")
	}
	from := journal.Seq(rapid.IntRange(1, len(m.blocks)+1).Draw(t, "thin from"))
	before := from + journal.Seq(rapid.IntRange(0, len(m.blocks)).Draw(t, "blocks"))
	every := core.Offset(rapid.IntRange(1, 3).Draw(t, "every"))
	held := func(x journal.Extent) bool { return x.Count > 0 && x.Next()%every != 0 }
	_, err := j.Thin(context.Background(), from, before, func(dst []journal.Extent, x journal.Extent) []journal.Extent {
		if held(x) {
			dst = append(dst, x)
		}
		return dst
	})
	if err != nil {
		t.Fatal(err)
	}
	for seq := from; seq < min(before, journal.Seq(len(m.blocks)+1)); seq++ {
		if m.blocks[seq-1].Len() == 0 {
			m.gone[place{seq, 0}] = true
		}
		for x := range m.blocks[seq-1].Extents() {
			if !held(x) {
				m.gone[place{seq, x.Partition}] = true
			}
		}
	}
}

// same checks what is left of a block: nothing else, and all that was not thinned away.
func (m *model) same(seq journal.Seq, raw []byte) error {
	got, err := journal.ParseBlock(raw)
	if err != nil {
		return err
	}
	b := m.blocks[seq-1]
	i := 0
	for x := range b.Extents() {
		if i < got.Len() && extentsEqual(x, got.Extent(i)) {
			i++
		} else if !m.gone[place{seq, x.Partition}] {
			return fmt.Errorf("block %d: partition %d is missing or changed", seq, x.Partition)
		}
	}
	if i < got.Len() || got.Time != b.Time || got.Epoch != b.Epoch {
		return fmt.Errorf("block %d: more than was appended", seq)
	}
	return nil
}

func extentsEqual(a, b journal.Extent) bool {
	return a.Partition == b.Partition && a.First == b.First && a.Count == b.Count && bytes.Equal(a.Data, b.Data)
}

// wants tells whether a block must be read with this hint for what is certainly left of it.
func (m *model) wants(seq journal.Seq, h journal.Hint) bool {
	b, certain := m.blocks[seq-1], false
	for x := range b.Extents() {
		if m.gone[place{seq, x.Partition}] {
			continue
		}
		certain = certain || !h.HasPartition || x.Partition == h.Partition && x.Next() > h.From
	}
	return h.Wants(b) && (certain || b.Len() == 0 && !m.gone[place{seq, 0}])
}

func (m *model) read(t *rapid.T) {
	h := journal.Hint{
		HasPartition: rapid.Bool().Draw(t, "by partition"),
		Partition:    rapid.Uint32Range(0, 6).Draw(t, "partition"),
		From:         rapid.Int64Range(0, 50).Draw(t, "from offset"),
		Since:        rapid.Int64Range(0, m.clock+5).Draw(t, "since"),
	}
	from := journal.Seq(rapid.IntRange(0, len(m.blocks)+2).Draw(t, "from"))
	rs, err := Collect(m.j, from, h)
	if err != nil {
		t.Fatalf("read from %d, %+v: %v", from, h, err)
	}
	got := map[journal.Seq][]byte{}
	for _, r := range rs {
		got[r.Seq] = r.Block
	}
	for seq := max(from, m.trimmed); seq <= journal.Seq(len(m.blocks)); seq++ {
		g, ok := got[seq]
		if !ok && m.wants(seq, h) {
			t.Fatalf("read from %d, %+v: block %d is missing", from, h, seq)
		}
		if ok {
			if err := m.same(seq, g); err != nil {
				t.Fatalf("read from %d, %+v: %v", from, h, err)
			}
		}
	}
}
