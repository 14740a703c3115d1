package memory

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"isthmus/core"
	"isthmus/core/journal"
)

// Store keeps its journals for as long as it lives.
type Store struct {
	mu       sync.Mutex
	journals map[string]*log
	fail     map[string]error
	hook     func(name string, block []byte) error

	checkpoints  map[string]map[string][]byte // of journal, by file; immutable bytes
	onCheckpoint func(name, file string) error
	onRemove     func(name string) error
}

// log is the data of one journal, guarded by Store.mu. Blocks are immutable.
type log struct {
	first   journal.Seq
	blocks  [][]byte
	bytes   int64
	thinned journal.Seq // the last block that was, 0: none
	epoch   uint64
	owner   *handle
}

func (l *log) next() journal.Seq { return l.first + journal.Seq(len(l.blocks)) }

// New returns an empty store.
func New() *Store {
	return &Store{journals: map[string]*log{}, fail: map[string]error{}, checkpoints: map[string]map[string][]byte{}}
}

// FailNext lets the next Append to the journal fail with err, which is fatal to its handle.
func (s *Store) FailNext(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[name] = err
}

// OnAppend has f called before each Append, outside of all locks. It may block; its error is fatal
// to the handle. nil ends it.
func (s *Store) OnAppend(f func(name string, block []byte) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = f
}

// Open implements journal.Store.
func (s *Store) Open(ctx context.Context, name string, epoch uint64, durable journal.Seq) (journal.Journal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, fmt.Errorf("open journal: empty name: %w", core.ErrInvalid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.journals[name]
	if l == nil {
		l = &log{first: 1}
	}
	if epoch < l.epoch {
		return nil, fmt.Errorf("open journal %s with epoch %d after %d: %w", name, epoch, l.epoch, core.ErrFenced)
	}
	if durable >= l.next() {
		return nil, &journal.Damage{Where: name, Seq: l.next(), Why: fmt.Sprintf("missing, though durable up to %d", durable)}
	}
	if l.owner != nil && l.owner.err == nil {
		l.owner.err = fmt.Errorf("journal %s was opened again: %w", name, core.ErrFenced)
	}
	l.epoch, l.owner = epoch, &handle{store: s, log: l, name: name}
	s.journals[name] = l
	return l.owner, nil
}

// handle is one opening of a log, guarded by Store.mu.
type handle struct {
	store  *Store
	log    *log
	name   string
	err    error // why no Append succeeds any more
	closed bool
}

func (h *handle) Append(ctx context.Context, block []byte) (journal.Seq, error) {
	if _, err := journal.Header(block); err != nil {
		return 0, fmt.Errorf("append to journal %s: %w: %w", h.name, core.ErrInvalid, err)
	}
	hook, err := h.begin(ctx)
	if err != nil {
		return 0, err
	}
	err = hook(h.name, block)
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if h.err == nil && err != nil {
		h.err = fmt.Errorf("journal %s stopped: %w", h.name, err)
	}
	if h.err != nil {
		return 0, h.err
	}
	return h.log.append(block), nil
}

// begin returns what Append calls outside of the lock.
func (h *handle) begin(ctx context.Context) (func(string, []byte) error, error) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if h.err != nil {
		return nil, h.err
	}
	if err := h.store.fail[h.name]; err != nil {
		delete(h.store.fail, h.name)
		return func(string, []byte) error { return err }, nil
	}
	if h.store.hook != nil {
		return h.store.hook, ctx.Err()
	}
	return func(string, []byte) error { return nil }, ctx.Err()
}

func (l *log) append(block []byte) journal.Seq {
	l.blocks = append(l.blocks, slices.Clone(block))
	l.bytes += int64(len(block))
	return l.next() - 1
}

func (h *handle) Read(ctx context.Context, from journal.Seq, hint journal.Hint) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for {
			block, seq, err := h.at(ctx, from)
			if err != nil {
				yield(journal.Record{}, err)
				return
			}
			if block == nil {
				return
			}
			from = seq + 1
			b, err := journal.ParseBlock(block)
			if err != nil {
				yield(journal.Record{}, err)
				return
			}
			if hint.Wants(b) && !yield(journal.Record{Seq: seq, Time: b.Time, Block: block}, nil) {
				return
			}
		}
	}
}

// at returns the first block from Seq from on, nil at the end.
func (h *handle) at(ctx context.Context, from journal.Seq) ([]byte, journal.Seq, error) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if h.closed {
		return nil, 0, h.err
	}
	for from = max(from, h.log.first); from < h.log.next(); from++ {
		if b := h.log.blocks[from-h.log.first]; b != nil { // nil: nothing of it is held
			return b, from, ctx.Err()
		}
	}
	return nil, 0, nil
}

func (h *handle) Trim(ctx context.Context, before journal.Seq) error {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if h.err != nil {
		return h.err
	}
	l := h.log
	for ; l.first < before && len(l.blocks) > 0; l.first++ {
		l.bytes -= int64(len(l.blocks[0]))
		l.blocks[0] = nil
		l.blocks = l.blocks[1:]
	}
	return ctx.Err()
}

// Thin implements journal.Thinner, block by block.
func (h *handle) Thin(ctx context.Context, from, before journal.Seq, keep journal.Keep) (freed int64, err error) {
	for {
		raw, seq, err := h.at(ctx, from)
		if err != nil || raw == nil || seq >= before {
			return freed, err
		}
		b, err := journal.Header(raw)
		if err != nil {
			return freed, err
		}
		thin, n, err := b.Thin(nil, keep) // outside of the lock: keep is the caller's
		if err != nil {
			return freed, err
		}
		if n == 0 {
			thin = nil
		}
		freed += h.replace(seq, thin, int64(len(raw)-len(thin)))
		from = seq + 1
	}
}

// Thinned implements journal.Thinner.
func (h *handle) Thinned() bool {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	return h.log.first <= h.log.thinned
}

func (h *handle) replace(seq journal.Seq, block []byte, saved int64) (freed int64) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	l := h.log
	if h.err != nil || seq < l.first || saved <= 0 {
		return 0
	}
	l.blocks[seq-l.first] = block
	l.thinned = max(l.thinned, seq)
	l.bytes -= saved
	return saved
}

func (h *handle) Bounds(context.Context) (first, next journal.Seq, bytes int64, err error) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if h.closed {
		return 0, 0, 0, h.err
	}
	return h.log.first, h.log.next(), h.log.bytes, nil
}

func (h *handle) Close() error {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if !h.closed {
		h.closed, h.err = true, fmt.Errorf("journal %s: %w", h.name, core.ErrClosed)
	}
	return nil
}
