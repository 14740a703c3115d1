package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"isthmus/core/journal"
)

// Finding is something that is wrong with a file.
type Finding struct {
	File     string
	Position int64
	What     string
	Harmless bool        // the next Open heals it, and nothing is lost
	From, To journal.Seq // the blocks that cannot be had; equal: none
}

// Inspection is the state of one journal that nobody has open.
type Inspection struct {
	First, Next journal.Seq // of the blocks, lost ones among them
	Epoch       uint64      // the highest one found
	Findings    []Finding

	dir     string
	rewrite []*inspected // segments that cannot stay as they are
	fence   bool         // the fence cannot be read
}

// Whole tells whether Open would find no fault.
func (i *Inspection) Whole() bool {
	return !slices.ContainsFunc(i.Findings, func(f Finding) bool { return !f.Harmless })
}

// inspected is a segment file, or the lack of one.
type inspected struct {
	*segment
	missing bool
	spots   []spot // whole records, in order
}

type spot struct {
	seq       journal.Seq
	pos, size int64
}

// Folder is the name of a journal's directory below Options.Dir.
func Folder(name string) string { return escape(name) }

// Inspect reads every record of a journal and changes nothing. begins is the first block that must be there, durable the
// last one. each is called for every whole block in order; lost: blocks before it, after the last call, cannot be had.
func (s *Store) Inspect(ctx context.Context, name string, begins, durable journal.Seq, each func(r journal.Record, lost bool) error) (*Inspection, error) {
	in := &inspection{opt: s.opt, ctx: ctx, each: each, durable: durable}
	in.out = &Inspection{dir: filepath.Join(s.opt.Dir, escape(name)), First: begins, Next: begins}
	if err := in.run(); err != nil {
		return nil, fmt.Errorf("inspect journal %s: %w", name, err)
	}
	return in.out, nil
}

type inspection struct {
	opt     Options
	ctx     context.Context
	each    func(journal.Record, bool) error
	durable journal.Seq
	out     *Inspection
	lost    bool // since the last whole block
}

func (in *inspection) found(f Finding) {
	in.out.Findings = append(in.out.Findings, f)
	in.lost = in.lost || f.To > f.From
}

func (in *inspection) run() error {
	names, err := in.opt.FS.ReadDir(in.out.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var bases []journal.Seq
	for _, n := range names {
		if base, ok := segmentBase(n); ok {
			bases = append(bases, base)
		} else if strings.HasSuffix(n, tmpExt) {
			in.found(Finding{File: filepath.Join(in.out.dir, n), What: "half made, the next start removes it", Harmless: true})
		}
	}
	slices.Sort(bases)
	if in.out.Epoch, err = readFence(in.opt.FS, in.out.dir); errors.Is(err, journal.ErrDamaged) {
		in.out.fence = true
		in.found(Finding{File: filepath.Join(in.out.dir, fenceName), What: "the fence cannot be read"})
	} else if err != nil {
		return err
	} else if in.out.Epoch == 0 && len(bases) > 0 {
		in.found(Finding{File: filepath.Join(in.out.dir, fenceName), What: "the fence is missing, the next start makes one", Harmless: true})
	}
	if len(bases) > 0 && bases[0] < in.out.First {
		in.out.First, in.out.Next = bases[0], bases[0] // trimmed in metadata, and not yet here
	}
	for i, base := range bases {
		end := journal.Seq(0)
		if i+1 < len(bases) {
			end = bases[i+1]
		}
		if err := in.segment(base, end); err != nil {
			return err
		}
	}
	if in.out.Next <= in.durable {
		in.gap(in.durable+1, "missing, though durable")
	}
	return nil
}

// gap notes that the blocks up to end are in no file.
func (in *inspection) gap(end journal.Seq, why string) {
	s := newSegment(in.out.dir, in.out.Next, 0)
	in.found(Finding{File: s.path, What: why, From: in.out.Next, To: end})
	s.next = end
	in.out.rewrite = append(in.out.rewrite, &inspected{segment: s, missing: true})
	in.out.Next = end
}

// segment examines one file; end is where the next one begins, 0: it is the last.
func (in *inspection) segment(base, end journal.Seq) error {
	switch {
	case base < in.out.Next: // a neighbour was merged into the one before
		in.found(Finding{File: segmentPath(in.out.dir, base), What: "left over from thinning, the next start removes it", Harmless: true})
		return nil
	case base > in.out.Next:
		in.gap(base, "the file is missing")
	}
	path := segmentPath(in.out.dir, base)
	f, err := in.opt.FS.Open(path, false)
	if err != nil {
		return err
	}
	defer f.Close()
	s, bad, err := in.load(f, path, base)
	if err != nil {
		return err
	}
	x := &inspected{segment: s}
	hurt := bad
	if s.generation != 0 {
		lossy, err := in.records(f, x)
		if err != nil {
			return err
		}
		hurt = hurt || lossy
	}
	if s.sealed {
		in.index(f, s)
	}
	next, missing := in.close(x, end, hurt)
	if hurt || missing {
		s.next = next
		in.out.rewrite = append(in.out.rewrite, x)
	}
	in.out.Next = next
	return nil
}

// close says what is missing at the end of a segment and where the next one begins.
func (in *inspection) close(x *inspected, end journal.Seq, hurt bool) (should journal.Seq, missing bool) {
	next := x.base
	if n := len(x.spots); n > 0 {
		next = x.spots[n-1].seq + 1
	}
	if x.sealed {
		next = max(next, x.next)
	}
	should = max(next, end)
	if end == 0 && next <= in.durable {
		should = in.durable + 1
	}
	switch {
	case should > next:
		in.found(Finding{File: x.path, Position: x.end, What: "blocks are missing at the end", From: next, To: should})
	case !x.sealed && end != 0 && !hurt:
		in.found(Finding{File: x.path, Position: x.capacity - footerSize, What: "no good footer, the next start writes it", Harmless: true})
	}
	return should, should > next
}

// index checks what only costs time when it is broken.
func (in *inspection) index(f File, s *segment) {
	b := make([]byte, s.indexLen)
	v := view{seg: s, next: s.next, end: s.end, sealed: true, indexLen: s.indexLen, time: s.time}
	if _, err := f.ReadAt(b, s.end); err == nil {
		if _, ok := decodeIndex(b, &v); ok {
			return
		}
	}
	in.found(Finding{File: s.path, Position: s.end, What: "broken index, reading takes longer", Harmless: true})
}

// load reads header and footer. bad: the file cannot stay as it is.
func (in *inspection) load(f File, path string, base journal.Seq) (s *segment, bad bool, err error) {
	s, err = loadSegment(f, path, base)
	var d *journal.Damage
	if err == nil {
		in.epoch(f)
		if !s.sealed && s.thin {
			bad = true
		}
		return s, bad, nil
	}
	if !errors.As(err, &d) {
		return nil, false, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, false, err
	}
	in.found(Finding{File: path, Position: d.Position, What: d.Why})
	s = newSegment(in.out.dir, base, size)
	s.generation, s.thin, s.next = 0, true, ^journal.Seq(0)
	// Its generation is in the first record, or in the footer.
	head := make([]byte, frameHeader)
	if n, _ := f.ReadAt(head, headerSize); n == frameHeader {
		s.generation = parseFrame(head).generation
	}
	return s, true, nil
}

func (in *inspection) epoch(f File) {
	b := make([]byte, headerSize)
	if _, err := f.ReadAt(b, 0); err == nil {
		in.out.Epoch = max(in.out.Epoch, le64(b[32:]))
	}
}
