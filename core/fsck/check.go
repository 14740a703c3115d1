package fsck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/journal/disk"
	"isthmus/core/meta/bolt"
)

// The parts of a data folder.
const (
	metaName     = "meta.db"
	journalsName = "journals"
	damagedExt   = ".damaged"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// examination is one pass over a data folder.
type examination struct {
	ctx   context.Context
	dir   string
	store *disk.Store
	cat   *catalog
	out   *Report

	logs    []*logState
	broken  []string // keys of checkpoints
	strange []string // folders of no journal
}

// logState is a journal as it was found.
type logState struct {
	name    string
	known   bool // to metadata
	in      *disk.Inspection
	next    map[uint32]core.Offset // behind the last whole message of each partition
	first   map[uint32]core.Offset // of the whole ones
	time    int64
	hurt    map[uint32]bool // blocks were lost since a partition was seen; nil: none at all
	lossy   bool            // blocks are lost,
	cutTail bool            // also the last ones that were there
}

// Check examines a data folder. The caller sees to it that nobody has it open.
func Check(ctx context.Context, dir string) (*Report, error) {
	x, err := examine(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("fsck %s: %w", dir, err)
	}
	return x.out, nil
}

func examine(ctx context.Context, dir string) (*examination, error) {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return nil, errors.Join(err, fmt.Errorf("no data folder: %w", core.ErrInvalid))
	}
	store, err := disk.New(disk.Options{Dir: filepath.Join(dir, journalsName)})
	if err != nil {
		return nil, err
	}
	x := &examination{ctx: ctx, dir: dir, store: store, out: &Report{Dir: dir, Problems: []Problem{}, Lost: []Lost{}}}
	if err := x.metadata(); err != nil {
		return nil, err
	}
	if err := x.folders(); err != nil {
		return nil, err
	}
	for _, l := range x.logs {
		if err := x.journal(l); err != nil {
			return nil, err
		}
	}
	return x, x.checkpoints()
}

func (x *examination) metadata() error {
	file := filepath.Join(x.dir, metaName)
	found, err := bolt.Check(file)
	if errors.Is(err, fs.ErrNotExist) {
		found, err = &bolt.Report{}, nil
		if names, _ := os.ReadDir(filepath.Join(x.dir, journalsName)); len(names) > 0 {
			x.out.add(Problem{Kind: "metadata", File: file, What: "missing, and there are journals"})
		}
	}
	if err != nil {
		return err
	}
	x.cat = readCatalog(found, file, x.out)
	return nil
}

// folders matches the folders that are there with the journals that should be.
func (x *examination) folders() error {
	topicOf, byFolder := x.cat.names(), map[string]string{}
	for name := range topicOf {
		byFolder[disk.Folder(name)] = name
	}
	for name := range x.cat.journals {
		byFolder[disk.Folder(name)] = name
		x.logs = append(x.logs, &logState{name: name, known: true})
	}
	es, err := os.ReadDir(filepath.Join(x.dir, journalsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range es {
		name, path := byFolder[e.Name()], filepath.Join(x.dir, journalsName, e.Name())
		_, known := x.cat.journals[name]
		switch {
		case known, strings.HasSuffix(e.Name(), damagedExt), !hasSegments(path):
		case name != "":
			x.logs = append(x.logs, &logState{name: name})
			x.out.add(Problem{Kind: "journal", File: path, Journal: name, What: "metadata has lost its record; topic " + topicOf[name] + " lies in it"})
		default:
			x.strange = append(x.strange, path)
			x.out.add(Problem{Kind: "journal", File: path, What: "no topic of the metadata lies in it"})
		}
	}
	slices.SortFunc(x.logs, func(a, b *logState) int { return cmp.Compare(a.name, b.name) })
	return nil
}

func hasSegments(dir string) bool {
	segments, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	return err == nil && len(segments) > 0
}

// journal reads a journal and follows the offsets of its partitions.
func (x *examination) journal(l *logState) (err error) {
	rec := x.cat.journals[l.name]
	l.next, l.first = map[uint32]core.Offset{}, map[uint32]core.Offset{}
	begins := x.cat.begins(l.name)
	for _, o := range x.cat.marks[l.name].next {
		l.next[o.Partition] = o.Offset
	}
	if !l.known {
		begins = 0 // whatever there is
	}
	l.in, err = x.store.Inspect(x.ctx, l.name, begins, journal.Seq(rec.Durable), func(r journal.Record, lost bool) error {
		return x.block(l, r, lost)
	})
	if err != nil {
		return err
	}
	for _, f := range l.in.Findings {
		kind := "segment"
		if strings.HasSuffix(f.File, "fence") {
			kind = "fence"
		}
		x.out.add(Problem{Kind: kind, File: f.File, Position: f.Position, What: f.What, Journal: l.name, From: f.From, To: f.To, Harmless: f.Harmless})
		l.lossy = l.lossy || f.To > f.From
		l.cutTail = l.cutTail || f.To >= l.in.Next && f.To > f.From
	}
	if l.lossy {
		x.tail(l)
	}
	return nil
}

func (x *examination) block(l *logState, r journal.Record, lost bool) error {
	b, err := journal.Header(r.Block)
	if err != nil {
		return err
	}
	if lost {
		l.hurt = map[uint32]bool{} // those that were seen since; whoever is not in it has maybe lost something
	}
	l.time = max(l.time, b.Time)
	for e := range b.Extents() {
		next, seen := l.next[e.Partition]
		if l.hurt != nil && !l.hurt[e.Partition] {
			l.hurt[e.Partition] = true
			if e.First > next {
				x.out.Lost = append(x.out.Lost, x.cat.lost(e.Partition, next, e.First, !seen))
			}
		}
		if _, ok := l.first[e.Partition]; !ok {
			l.first[e.Partition] = e.First
		}
		l.next[e.Partition] = max(next, e.Next())
	}
	return nil
}

// tail tells what is lost behind the last whole message of each partition: what metadata knows was there, and when the end
// of the journal is gone what it knows may have been given.
func (x *examination) tail(l *logState) {
	ends := map[uint32]core.Offset{}
	if l.cutTail {
		for _, o := range x.cat.limits[l.name].Limits {
			ends[o.Partition] = o.Offset
		}
	}
	sure := map[uint32]core.Offset{}
	for _, o := range x.cat.journals[l.name].Next {
		sure[o.Partition] = o.Offset
		ends[o.Partition] = max(ends[o.Partition], o.Offset)
	}
	for _, n := range slices.Sorted(maps.Keys(ends)) {
		if next := l.next[n]; ends[n] > next {
			x.out.Lost = append(x.out.Lost, x.cat.lost(n, next, ends[n], sure[n] != ends[n]))
		}
	}
}

// forgotten is what a journal no longer tells of a view that is made again: thinning keeps bodies, and no note of their release.
var forgotten = map[string]string{
	"parked": "; where it was thinned, delayed messages that were released may be released again",
	"dedup":  "; messages that are no longer in it are not known as sent",
}

// checkpoints holds the files of views against what metadata says of them.
func (x *examination) checkpoints() error {
	for _, key := range slices.Sorted(maps.Keys(x.cat.checkpoints)) {
		name, kind, _ := strings.Cut(key, separator)
		for _, f := range x.cat.checkpoints[key].Files {
			path := filepath.Join(x.dir, journalsName, disk.Folder(name), f.Name+".view")
			b, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err == nil && int64(len(b)) == f.Size && crc32.Checksum(b, castagnoli) == f.CRC {
				continue
			}
			x.broken = append(x.broken, key)
			x.out.add(Problem{Kind: "checkpoint", File: path, Journal: name, What: "broken or missing: " + kind + " is made again from the journal" + forgotten[kind]})
			break
		}
	}
	return nil
}
