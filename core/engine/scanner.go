package engine

import (
	"context"
	"sort"
	"sync"
	"time"

	"isthmus/core/journal"
)

// A scan reads a stretch of a journal for a reader whom neither the tail nor the cold cache could serve. Readers that are
// near each other share scans: all partitions of every block are kept, and the others find them in the cache. A lone
// reader keeps only what is its own, and lets the journal skip the rest.

const (
	scanBytes = 1 << 20     // of one scan that goes on where the last one ended, or serves several
	nearBytes = 8 << 20     // readers no farther apart than this share
	nearFor   = time.Second // after the last time that one scanned
	maxNear   = 16          // places of readers that are remembered
	// maxYield is how long a scan waits for a block that is on its way to the disk, before it reads one itself.
	maxYield = 10 * time.Millisecond
)

// scanner is what the readers of one log agree on. The mutex is a leaf.
type scanner struct {
	mu struct {
		sync.Mutex
		running []*scan
		seen    [maxNear]sighting
		next    int           // of seen
		flying  bool          // a block is on its way to the disk
		landed  chan struct{} // closed when it has landed; nil: nobody waits
	}
}

// fly notes that the committer begins to write a block.
func (s *scanner) fly() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.flying = true
}

// land notes that it is done.
func (s *scanner) land() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.flying = false
	if s.mu.landed != nil {
		close(s.mu.landed)
		s.mu.landed = nil
	}
}

// yield lets the live block go first: one disk serves both, and producers and consumers of the tail wait for that one. Between
// two live blocks a scan reads at least one, so it never starves.
func (s *scanner) yield(ctx context.Context) {
	s.mu.Lock()
	if !s.mu.flying {
		s.mu.Unlock()
		return
	}
	if s.mu.landed == nil {
		s.mu.landed = make(chan struct{})
	}
	landed := s.mu.landed
	s.mu.Unlock()
	timer := time.NewTimer(maxYield)
	defer timer.Stop()
	select {
	case <-landed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sighting is a reader who scanned lately.
type sighting struct {
	partition uint32
	seq       journal.Seq
	at        time.Time
}

// scan is one that is under way.
type scan struct {
	partition uint32
	from      journal.Seq
	shared    bool
	done      chan struct{}
}

// readCold collects what is older than the tail: from the cold cache, and by scans, as many as the cache has room for beside
// those of others. It finds nothing where nothing is left of the partition, as thinning may cause.
func (p *Partition) readCold(ctx context.Context, r *readRequest) error {
	e := p.log.eng
	scanned, lone := int64(0), false
	defer func() { e.metrics.coldRead(scanned == 0) }()
	for {
		if err := p.takeCached(r); err != nil || r.done() || r.some && scanned >= e.cold.limit/4 {
			return err
		}
		if r.some {
			if ok, err := p.readTail(r); ok {
				return err
			}
		}
		x, err := p.scan(ctx, r, lone)
		if err != nil && r.some {
			return nil // the next call will say it
		}
		if err != nil {
			return err
		}
		if x == nil {
			continue // somebody else was scanning here
		}
		before := r.from
		if err := r.takeRun(x); err != nil || lone && r.from == before {
			return err
		}
		scanned += x.run.bytes
		lone = r.from == before // nothing of it in what others read: the journal shall skip
	}
}

// takeCached adds what runs in the cache have from r.from on.
func (p *Partition) takeCached(r *readRequest) error {
	for !r.done() {
		x := p.log.eng.cold.find(p, r.from)
		if x == nil {
			return nil
		}
		before := r.from
		if err := r.takeRun(x); err != nil || r.from == before {
			return err
		}
	}
	return nil
}

// takeRun adds what a run has from r.from on.
func (r *readRequest) takeRun(x *coldPart) error {
	ext := x.extents
	for i := sort.Search(len(ext), func(i int) bool { return ext[i].end > r.from }); i < len(ext) && !r.full(); i++ {
		x := ext[i]
		if err := r.take(&x); err != nil {
			return err
		}
	}
	return nil
}

// scan reads on from where the offset may be. It returns nil when another scan was under way that may have brought it.
func (p *Partition) scan(ctx context.Context, r *readRequest, lone bool) (*coldPart, error) {
	l := p.log
	from, exact := l.eng.cold.placeOf(p, r.from)
	l.tail.RLock()
	from = max(from, l.marked(p.number, r.from))
	l.tail.RUnlock()
	s, wait := l.begin(p.number, from, lone)
	if wait != nil {
		select {
		case <-wait:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer l.end(s)
	want := min(scanBytes, l.eng.cold.limit/4)
	hint := journal.Hint{Keep: true}
	if !s.shared {
		hint = journal.Hint{Partition: p.number, HasPartition: true, From: r.from}
		if !exact {
			want = min(want, int64(r.maxBytes))
		}
	}
	b := newBuilder(p, r.from, from, s.shared)
	if err := b.read(ctx, hint, want); err != nil {
		return nil, err
	}
	l.eng.cold.add(&b.coldRun, b.next)
	l.eng.metrics.scannedBytes.Add(float64(b.bytes))
	return &b.parts[0], nil
}

// begin registers a scan, or returns what to wait for when one is under way that may bring the same.
func (l *log) begin(partition uint32, from journal.Seq, lone bool) (s *scan, wait <-chan struct{}) {
	now := time.Now()
	l.tail.RLock()
	near := l.distance(from)
	l.tail.RUnlock()
	m := &l.scanner.mu
	m.Lock()
	defer m.Unlock()
	for _, x := range m.running {
		if (x.partition == partition || x.shared && !lone) && x.from <= from && near(x.from) {
			return nil, x.done
		}
	}
	s = &scan{partition: partition, from: from, done: make(chan struct{})}
	at := -1
	for i := range m.seen {
		x := &m.seen[i]
		switch {
		case x.seq == 0 || now.Sub(x.at) > nearFor || !near(x.seq):
		case x.partition == partition:
			at = i
		case !lone:
			s.shared = true
		}
	}
	if at < 0 {
		at, m.next = m.next, (m.next+1)%maxNear
	}
	m.seen[at] = sighting{partition, from, now}
	m.running = append(m.running, s)
	return s, nil
}

func (l *log) end(s *scan) {
	m := &l.scanner.mu
	m.Lock()
	for i, x := range m.running {
		if x == s {
			m.running = append(m.running[:i], m.running[i+1:]...)
			break
		}
	}
	m.Unlock()
	close(s.done)
}

// distance tells who is near a Seq, by the marks in between. The caller holds l.tail; the answer needs no lock.
func (l *log) distance(seq journal.Seq) (near func(journal.Seq) bool) {
	const marks = nearBytes / markBytes
	ms := l.tail.marks
	i := sort.Search(len(ms), func(i int) bool { return ms[i].seq > seq })
	low, high := journal.Seq(0), ^journal.Seq(0)
	if i-1-marks >= 0 {
		low = ms[i-1-marks].seq
	}
	if i+marks < len(ms) {
		high = ms[i+marks].seq
	}
	return func(x journal.Seq) bool { return low <= x && x < high }
}
