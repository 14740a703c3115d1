package serve

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a connected TCP pair: ours and the peer's end.
func pair(t *testing.T) (ours, peer net.Conn) {
	t.Helper()
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if peer, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if ours, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); peer.Close() })
	return ours, peer
}

func TestFlushWritesWithoutAGoroutine(t *testing.T) {
	ours, peer := pair(t)
	o := NewOut(ours, 1<<20)
	if n, err := o.Append(func(d []byte) []byte { return append(d, "hello"...) }); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	if err := o.Flush(); err != nil || o.Buffered() != 0 {
		t.Fatal(err, o.Buffered())
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(peer, got); err != nil || string(got) != "hello" {
		t.Fatalf("%q %v", got, err)
	}
	o.Close(0)
}

func TestFlushAllocatesNothing(t *testing.T) {
	ours, peer := pair(t)
	go io.Copy(io.Discard, peer)
	o := NewOut(ours, 1<<20)
	defer o.Close(0)
	msg := []byte("0123456789")
	allocs := testing.AllocsPerRun(500, func() {
		o.Append(func(d []byte) []byte { return append(d, msg...) })
		o.Flush()
	})
	if allocs > 0.1 {
		t.Fatalf("%v allocations a flush", allocs)
	}
}

// A peer that does not read first costs a goroutine, then meets the limit; what it reads later is in order.
func TestFullSocketGoesToTheWriter(t *testing.T) {
	for name, ends := range map[string]func(*testing.T) (net.Conn, net.Conn){
		"tcp":  pair,
		"pipe": func(*testing.T) (net.Conn, net.Conn) { return net.Pipe() },
	} {
		t.Run(name, func(t *testing.T) {
			ours, peer := ends(t)
			o := NewOut(ours, 1<<30)
			drained := make(chan struct{}, 1)
			o.OnDrained(func() {
				select {
				case drained <- struct{}{}:
				default:
				}
			})
			var want bytes.Buffer
			for i := range 200 {
				chunk := bytes.Repeat([]byte{byte(i)}, 32<<10)
				want.Write(chunk)
				if _, err := o.Write(chunk); err != nil {
					t.Fatal(err)
				}
				if err := o.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if o.Buffered() == 0 {
				t.Fatal("the socket took 6 MiB without a reader")
			}
			got := make([]byte, want.Len())
			if _, err := io.ReadFull(peer, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want.Bytes()) {
				t.Fatal("bytes differ")
			}
			<-drained
			if o.Buffered() != 0 {
				t.Fatal("something is left")
			}
			o.Close(0)
			peer.Close()
		})
	}
}

func TestLimitEndsASlowClient(t *testing.T) {
	ours, peer := net.Pipe()
	defer peer.Close()
	o := NewOut(ours, 100)
	var err error
	for range 100 {
		if _, err = o.Write(make([]byte, 50)); err != nil {
			break
		}
		o.Flush()
	}
	if !errors.Is(err, ErrSlow) || !errors.Is(o.Flush(), ErrSlow) {
		t.Fatal(err)
	}
	o.Close(0)
}

// Anybody can end a connection: its reader returns, and nothing more is taken.
func TestFailUnblocksTheReader(t *testing.T) {
	ours, _ := pair(t)
	o := NewOut(ours, 100)
	var reader sync.WaitGroup
	reader.Go(func() { ours.Read(make([]byte, 1)) })
	o.Fail(io.ErrClosedPipe)
	reader.Wait()
	o.Fail(io.EOF)
	if _, err := o.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
	o.Close(0)
}

// The last words arrive although input was never read, which would otherwise make the kernel send RST.
func TestCloseIsPolite(t *testing.T) {
	ours, peer := pair(t)
	if _, err := peer.Write(make([]byte, 10_000)); err != nil {
		t.Fatal(err)
	}
	o := NewOut(ours, 1<<20)
	o.Write([]byte("goodbye"))
	var closing sync.WaitGroup
	closing.Go(func() { o.Close(time.Second) })
	got, err := io.ReadAll(peer)
	if err != nil || string(got) != "goodbye" {
		t.Fatalf("%q %v", got, err)
	}
	peer.Close()
	closing.Wait()
	if _, err := o.Write(nil); err == nil {
		t.Fatal("append after close")
	}
}

func TestConcurrentAppendsStayWhole(t *testing.T) {
	ours, peer := pair(t)
	o := NewOut(ours, 1<<20)
	const each, writers = 500, 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				o.Append(func(d []byte) []byte { return append(d, byte(w), byte(w), byte(w), byte(w)) })
				o.Flush()
			}
		})
	}
	got := make([]byte, 4*each*writers)
	if _, err := io.ReadFull(peer, got); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(got); i += 4 {
		if got[i] != got[i+1] || got[i] != got[i+3] {
			t.Fatalf("torn at %d", i)
		}
	}
	wg.Wait()
	o.Close(0)
}

// What is said last is the last, whoever goes on appending; and it is sent even when nobody may linger.
func TestNothingFollowsTheLastWords(t *testing.T) {
	for name, full := range map[string]int32{"lingering": 0, "too many linger": maxLingering} {
		t.Run(name, func(t *testing.T) {
			lingering.Add(full)
			defer lingering.Add(-full)
			ours, peer := pair(t)
			o := NewOut(ours, 1<<20)
			if err := o.Last(func(d []byte) []byte { return append(d, "bye"...) }); err != nil {
				t.Fatal(err)
			}
			if _, err := o.Write([]byte("and another thing")); !errors.Is(err, net.ErrClosed) {
				t.Fatal(err)
			}
			if err := o.With(func() { t.Error("called") }); !errors.Is(err, net.ErrClosed) {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { defer close(ended); o.Close(maxLingerTime) }()
			got, err := io.ReadAll(peer)
			if err != nil || string(got) != "bye" {
				t.Fatalf("%q %v", got, err)
			}
			peer.Close()
			<-ended
		})
	}
}
