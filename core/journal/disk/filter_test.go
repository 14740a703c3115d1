package disk

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"isthmus/core"
	"isthmus/core/journal"
	"isthmus/core/journal/journaltest"
)

func hashEntries(dst []uint32, x journal.Extent) []uint32 { return core.AppendHashes(dst, x.Data) }

// topics appends n blocks of perBlock entries of size bytes; entry i is of topic i%spread, but for every far-th, whose
// topic is 1<<20. It returns how many those are.
func topics(t testing.TB, j journal.Journal, n, perBlock, size, spread, far int) (rare int) {
	t.Helper()
	body := bytes.Repeat([]byte("b"), size)
	at := 0
	for i := range n {
		x := journal.Extent{Partition: 1, First: core.Offset(at)}
		for range perBlock {
			e := core.Entry{Count: 1, Flags: core.FlagHasKey, Key: fmt.Appendf(nil, "key-%d", at%spread), AddressHash: uint32(at%spread) + 1, Data: body}
			if at++; at%far == 0 {
				e.AddressHash = 1 << 20
				rare++
			}
			x.Data = core.AppendEntry(x.Data, &e)
			x.Count++
		}
		appendBlock(t, j, journal.AppendBlock(nil, 1, int64(i), x))
	}
	return rare
}

// count reads with the hint and tells how many entries of the topic there were, and how many blocks.
func count(t testing.TB, j journal.Journal, h journal.Hint, match func(*core.Entry) bool) (found, blocks int) {
	t.Helper()
	for r, err := range j.Read(t.Context(), 1, h) {
		if err != nil {
			t.Fatal(err)
		}
		blocks++
		b, err := journal.Header(r.Block)
		if err != nil {
			t.Fatal(err)
		}
		for x := range b.Extents() {
			for rest, next := x.Data, x.First; len(rest) > 0; {
				var e core.Entry
				if rest, err = core.ParseEntry(rest, next, &e); err != nil {
					t.Fatal(err)
				}
				if next = e.End(); match(&e) {
					found++
				}
			}
		}
	}
	return found, blocks
}

func ofTopic(hash uint32) func(*core.Entry) bool {
	return func(e *core.Entry) bool { return e.AddressHash == hash }
}

// A reader of one topic or key gets all of it and little else: from sealed segments, the open one, and thinned ones.
func TestHashesSkip(t *testing.T) {
	for name, hash := range map[string]func([]uint32, journal.Extent) []uint32{"hashed": hashEntries, "not": nil} {
		t.Run(name, func(t *testing.T) {
			const n = 3000
			o := Options{Dir: t.TempDir(), SegmentMin: 1 << 20, SegmentMax: 4 << 20, FS: &faultFS{}, Hashes: hash}
			j := journaltest.Open(t, newStore(t, o), "j", 1, 0).(*Journal)
			rare := topics(t, j, n, 4, 1<<10, 1000, 1500)
			check := func(j *Journal, rare int) {
				t.Helper()
				found, blocks := count(t, j, journal.Hint{Hashes: []uint32{1 << 20}}, ofTopic(1<<20))
				if most := n / 4; found != rare || hash != nil && blocks > most || hash == nil && blocks <= most {
					t.Fatalf("%d of %d found in %d blocks", found, rare, blocks)
				}
				key := core.HashKey([]byte("key-8"))
				found, _ = count(t, j, journal.Hint{Hashes: []uint32{3, key}}, func(e *core.Entry) bool { return string(e.Key) == "key-8" })
				if want, _ := count(t, j, journal.Hint{}, func(e *core.Entry) bool { return string(e.Key) == "key-8" }); found != want || want < 3 {
					t.Fatalf("%d of %d of a key", found, want)
				}
			}
			check(j, rare)
			j.Close()
			j = journaltest.Open(t, newStore(t, o), "j", 1, n).(*Journal)
			check(j, rare)
			if _, err := j.Thin(t.Context(), 0, n, halfOf); err != nil {
				t.Fatal(err)
			}
			left, _ := count(t, j, journal.Hint{}, ofTopic(1<<20))
			check(j, left)
		})
	}
}

// halfOf keeps the first entry of every extent, and no second.
func halfOf(dst []journal.Extent, x journal.Extent) []journal.Extent {
	var e core.Entry
	rest, err := core.ParseEntry(x.Data, x.First, &e)
	if err != nil {
		return append(dst, x)
	}
	return append(dst, journal.Extent{Partition: x.Partition, First: x.First, Count: 1, Data: x.Data[:len(x.Data)-len(rest)]})
}

// A filter holds all that went in, and of a thousand others few.
func TestFilterFalsePositives(t *testing.T) {
	for _, n := range []int{1, 10, 700, 20000} {
		h := hashes{hash: func(dst []uint32, x journal.Extent) []uint32 {
			for i := range n {
				dst = append(dst, core.HashKey(fmt.Append(nil, i)))
			}
			return dst
		}}
		h.add(journal.Extent{Data: make([]byte, n*hashBytes)})
		f := h.flush(nil)
		wrong := 0
		for i := range n + 10000 {
			has := filterHas(f, core.HashKey(fmt.Append(nil, i)))
			if i < n && !has {
				t.Fatalf("%d hashes: one is missing", n)
			}
			if i >= n && has {
				wrong++
			}
		}
		if len(f) != filterWords(n) || wrong > 350 {
			t.Errorf("%d hashes: %d words, %d of 10000 wrong", n, len(f), wrong)
		}
	}
	many := hashes{hash: func(dst []uint32, _ journal.Extent) []uint32 { return append(dst, 1, 2, 3) }}
	many.add(journal.Extent{Data: make([]byte, 2*hashBytes)})
	if f := many.flush(nil); !filterHas(f, 99) {
		t.Error("more hashes than there is room for, and one is missed")
	}
}

// BenchmarkFindTopic finds ten messages of one topic in 1 GiB of messages of a thousand others, by the filters and without.
// ns/op is one search, read-MB what it read.
func BenchmarkFindTopic(b *testing.B) {
	ffs := &faultFS{}
	o := Options{Dir: b.TempDir(), Sync: Interval, Hashes: hashEntries, FS: ffs}
	j := journaltest.Open(b, newStore(b, o), "j", 1, 0).(*Journal)
	const blocks, perBlock = 4000, 240
	begin := time.Now()
	rare := topics(b, j, blocks, perBlock, 1<<10, 1000, blocks*perBlock/10)
	b.Logf("%d messages, %d of the topic, written in %v", blocks*perBlock, rare, time.Since(begin))
	for name, hashes := range map[string][]uint32{"filtered": {1 << 20}, "whole": nil} {
		b.Run(name, func(b *testing.B) {
			ffs.read.Store(0)
			for b.Loop() {
				if found, _ := count(b, j, journal.Hint{Hashes: hashes}, ofTopic(1<<20)); found != rare {
					b.Fatalf("%d found", found)
				}
			}
			b.ReportMetric(float64(ffs.read.Load())/float64(b.N)/1e6, "read-MB")
		})
	}
}

// FuzzFilters: a section that decodes leads nobody astray.
func FuzzFilters(f *testing.F) {
	x := index{hashed: true, stretches: []stretch{{words: 0}, {words: 2}, {words: 2}}, words: []uint64{1, 2, 3}}
	f.Add(x.encodeFilters()[sectionHeader:])
	f.Add([]byte{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		x := index{stretches: make([]stretch, 3)}
		x.decodeFilters(raw)
		for i := range x.stretches {
			x.hashWanted(i, journal.Hint{Hashes: []uint32{1, 1 << 31}})
		}
		if x.hashed && !bytes.Equal(x.encodeFilters()[sectionHeader:], raw) {
			t.Fatal("not what was decoded")
		}
	})
}

// BenchmarkHashes is what hashing costs Append: ns/op is one message of 128 bytes, of a thousand topics and keys.
func BenchmarkHashes(b *testing.B) {
	x, n := journal.Extent{Partition: 1}, 1000
	for i := range n {
		e := core.Entry{Count: 1, Flags: core.FlagHasKey, Key: fmt.Appendf(nil, "dev-%d", i), AddressHash: uint32(i)*2654435761 + 1, Data: make([]byte, 128)}
		x.Data = core.AppendEntry(x.Data, &e)
		x.Count++
	}
	block, err := journal.ParseBlock(journal.AppendBlock(nil, 1, 1, x))
	if err != nil {
		b.Fatal(err)
	}
	for name, hash := range map[string]func([]uint32, journal.Extent) []uint32{"hashed": hashEntries, "not": nil} {
		b.Run(name, func(b *testing.B) {
			x, pos := newIndexBuilder(hash), int64(headerSize)
			for i := 0; b.Loop(); i++ {
				if i%n == 0 {
					x.add(journal.Seq(i/n+1), pos, block)
					pos += int64(len(block.Bytes()))
				}
			}
		})
	}
}
