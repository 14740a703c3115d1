package dispatch

import (
	"fmt"
	"slices"
	"testing"

	"isthmus/core"

	"pgregory.net/rapid"
)

// Averaging as clients do it, over pullers and phantoms: S3.18, S3.19, S3.20 and the blocks of appendix B.
func TestLeaseTargetsAreTheClientsArithmetic(t *testing.T) {
	for _, v := range []struct {
		partitions, pullers, pool int
		want                      []int // partitions of each puller, then of the pool
	}{
		{11, 1, 2, []int{4, 7}}, {11, 2, 2, []int{3, 3, 5}}, {8, 8, 2, []int{1, 1, 1, 1, 1, 1, 1, 1, 0}},
		{8, 2, 1, []int{3, 3, 2}}, {8, 4, 4, []int{1, 1, 1, 1, 4}}, {1, 1, 5, []int{1, 0}},
	} {
		l := Leases{HandOver: 1000, Silence: 1000}
		var ids []string
		for i := range v.pullers {
			ids = append(ids, fmt.Sprintf("10.0.0.%d@1", i))
		}
		l.Members(v.partitions, ids, v.pool, 0)
		got, last := make([]int, v.pullers+1), 0
		for i := range v.partitions {
			k := slices.Index(ids, l.Holder(int32(i)))
			if k < 0 {
				k = v.pullers
			}
			if k < last {
				t.Errorf("%+v: partition %d goes to %d, after one of %d: not in blocks", v, i, k, last)
			}
			got[k], last = got[k]+1, k
		}
		if !slices.Equal(got, v.want) {
			t.Errorf("%d partitions over %d pullers and %d in the pool: %v, want %v", v.partitions, v.pullers, v.pool, got, v.want)
		}
	}
}

// Members of all kinds come, go, pull, acknowledge and fall silent. At any moment at most one side may take from a partition;
// who takes over with the old holder still there and in time finds nothing of its unacknowledged; quiet ends every hand-over.
func TestLeasesAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const partitions = 5
		l := Leases{HandOver: 60_000, Silence: 60_000}
		now, pool, inFlight := int64(1000), 0, [partitions]bool{}
		pullers := []string{}
		var given, mark [partitions]core.Offset
		ids := rapid.SampledFrom([]string{"a", "b", "c"})
		some := rapid.Int32Range(0, partitions-1)
		members := func() {
			if pool == 0 {
				inFlight = [partitions]bool{}
			}
			l.Members(partitions, pullers, pool, now)
		}
		members()
		moved := func(t *rapid.T) {
			for _, m := range l.Moves() {
				if m.Why == "acknowledged" && (m.From == Pool && inFlight[m.Partition] || m.From != Pool && given[m.Partition] > mark[m.Partition]) {
					t.Fatalf("%+v, with something unacknowledged", m)
				}
				given[m.Partition] = mark[m.Partition]
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"come": func(t *rapid.T) {
				if id := ids.Draw(t, "id"); !slices.Contains(pullers, id) {
					pullers = append(pullers, id)
				}
				members()
			},
			"go": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				pullers = slices.DeleteFunc(pullers, func(p string) bool { return p == id })
				members()
			},
			"pool": func(t *rapid.T) { pool = rapid.IntRange(0, 3).Draw(t, "members"); members() },
			"pull": func(t *rapid.T) {
				i, id := some.Draw(t, "partition"), ids.Draw(t, "id")
				if !slices.Contains(pullers, id) {
					return
				}
				before := l.Holder(i)
				if !l.Pull(i, id, now) {
					return
				}
				if pool > 0 && (inFlight[i] && before != id || l.Serves(i) || before != id) {
					t.Fatalf("%s takes from %d, which is at %s", id, i, before)
				}
				if before != id {
					given[i] = mark[i]
				}
				given[i] = max(given[i], mark[i]) + 1
				l.Given(i, id, given[i])
			},
			"commit": func(t *rapid.T) {
				i, id := some.Draw(t, "partition"), ids.Draw(t, "id")
				next := mark[i] + rapid.Int64Range(0, 3).Draw(t, "n")
				if ok := l.Committable(i, id, next); ok && l.Enforced() && next > max(mark[i], given[i]) {
					t.Fatalf("%s may acknowledge %d of %d, which it never got", id, next, i)
				} else if ok {
					mark[i] = max(mark[i], next)
					l.Mark(i, mark[i], now)
				}
			},
			"deliver": func(t *rapid.T) {
				i := some.Draw(t, "partition")
				if l.Serves(i) {
					inFlight[i] = true
				}
			},
			"acknowledged": func(t *rapid.T) {
				i := some.Draw(t, "partition")
				inFlight[i] = false
				l.Idle(i, now)
			},
			"unlock": func(t *rapid.T) { l.Unlock(some.Draw(t, "partition"), ids.Draw(t, "id"), now) },
			"time":   func(t *rapid.T) { now += rapid.Int64Range(1, 50_000).Draw(t, "ms"); l.Expire(now) },
			"": func(t *rapid.T) {
				moved(t)
				for i := range int32(partitions) {
					if h := l.Holder(i); pool > 0 && h != Pool && !slices.Contains(pullers, h) {
						t.Fatalf("%d is at %q, who is not there", i, h)
					}
				}
			},
		})
		for range 3 { // quiet: nobody pulls or acknowledges any more
			now += 60_000
			l.Expire(now)
		}
		for i := range int32(partitions) {
			if pool > 0 && !l.Serves(i) {
				t.Fatalf("%d is at %q and nobody takes from it", i, l.Holder(i))
			}
		}
	})
}
