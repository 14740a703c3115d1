package engine_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"isthmus/core"
	"isthmus/core/engine"
)

// BenchmarkNativeAppend sets durable appends of 64 KiB native entries, 16 producers with 4 in flight each, against the bare
// disk: the same bytes written and synced in chunks of 256 KiB, once into files that are allocated as they grow, as a log
// that is never trimmed does, and once over bytes written before. They take turns of 16 MiB, so that a busy disk disturbs
// all alike. ns/op is one turn of all three.
func BenchmarkNativeAppend(b *testing.B) {
	const turn, entry = 16 << 20, 64 << 10
	d := newDiskBed(b, nil)
	topic := d.topic(8)
	ours := nativeAppends(b, d.engine, topic, entry)
	grow, over := rawChunks(b, true), rawChunks(b, false)
	var took [3]time.Duration
	for b.Loop() {
		for i, f := range []func(int){ours, grow, over} {
			begin := time.Now()
			f(turn)
			took[i] += time.Since(begin)
		}
	}
	total := float64(turn) * float64(b.N) / 1e6
	b.ReportMetric(total/took[0].Seconds(), "MB/s")
	b.ReportMetric(total/took[1].Seconds(), "grow-MB/s")
	b.ReportMetric(total/took[2].Seconds(), "overwrite-MB/s")
	b.ReportMetric(100*took[1].Seconds()/took[0].Seconds(), "%-of-grow")
	b.ReportMetric(100*took[2].Seconds()/took[0].Seconds(), "%-of-overwrite")
}

// nativeAppends returns a function that publishes so many bytes and waits until they are durable.
func nativeAppends(b *testing.B, e *engine.Engine, topic *engine.Topic, size int) func(int) {
	const producers, window = 16, 4
	ent := &core.Entry{Count: 1, Format: core.FormatPulsar, Data: make([]byte, size)}
	return func(bytes int) {
		var wg sync.WaitGroup
		for i := range producers {
			wg.Go(func() {
				free := make(chan int, window)
				p := e.NewProducer("bench", func(rs []engine.Receipt) { free <- len(rs) })
				room := window
				for sent, acked, n := 0, 0, bytes/size/producers; acked < n; {
					for ; room > 0 && sent < n; room, sent = room-1, sent+1 {
						if err := p.Publish(topic.Partition(int32(i%8)), ent, 0); err != nil {
							b.Error(err)
							return
						}
					}
					k := <-free
					room, acked = room+k, acked+k
				}
			})
		}
		wg.Wait()
	}
}

// rawChunks writes and syncs 256 KiB at a time into files of 64 MiB: ever new ones, or one that was written before.
func rawChunks(b *testing.B, grow bool) func(int) {
	const chunk, room = 256 << 10, 64 << 20
	dir, block := b.TempDir(), make([]byte, chunk)
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		if err := unix.Fallocate(int(f.Fd()), 0, 0, room); err != nil {
			b.Fatal(err)
		}
		return f
	}
	f, pos := open("raw"), 0
	b.Cleanup(func() { f.Close() })
	write := func(bytes int, sync bool) {
		for ; bytes > 0; bytes -= chunk {
			if pos == room {
				if pos = 0; grow {
					os.Remove(f.Name())
					f.Close()
					f = open("raw")
				}
			}
			if _, err := f.WriteAt(block, int64(pos)); err != nil {
				b.Fatal(err)
			}
			if pos += chunk; sync {
				if err := unix.Fdatasync(int(f.Fd())); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	if !grow {
		write(room, false)
		f.Sync()
	}
	return func(bytes int) { write(bytes, true) }
}
