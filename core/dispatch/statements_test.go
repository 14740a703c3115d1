package dispatch

import (
	"errors"
	"fmt"
	"testing"

	"isthmus/core"

	"pgregory.net/rapid"
)

// What users were promised and what is decided in this room, statement by statement. The scripts say it in full; TestScripts
// runs them all, also those that prove rules without a number.

func TestS1_18_SecondExclusiveIsBusy(t *testing.T) {
	runScript(t, "testdata/exclusive_second_is_busy.txt")
}

func TestS1_20_ExclusiveResumesAtTheFirstUnacknowledged(t *testing.T) {
	runScript(t, "testdata/exclusive_resumes.txt")
}

func TestS1_21_ExclusiveKeepsPublishOrder(t *testing.T) {
	runScript(t, "testdata/exclusive_order.txt")
}

func TestS1_22_FailoverHasOneActive(t *testing.T) {
	runScript(t, "testdata/failover_one_active.txt")
}

func TestS1_23_FailoverSpreadsPartitions(t *testing.T) {
	runScript(t, "testdata/failover_spread.txt")
}

func TestS1_24_FailoverHandsOverTheTail(t *testing.T) {
	runScript(t, "testdata/failover_hands_over_the_tail.txt")
}

func TestS1_25_FailoverLineIsPriorityThenName(t *testing.T) {
	runScript(t, "testdata/failover_priority.txt")
}

// S1.23, S1.26 and S1.27 in general: n consumers on p partitions, in whatever order they come, have one or two numbers of
// partitions that differ by one, and exactly p own something when n exceeds p.
func TestS1_26_S1_27_FailoverLeavesNobodyIdleWithoutNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.IntRange(1, 16).Draw(t, "partitions")
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,8}`), 1, 20, rapid.ID).Draw(t, "names")
		owned := map[ConsumerID]int{}
		for i := range partitions {
			s, err := New(core.Failover, Placement{Partition: int32(i), Partitioned: true}, core.Cursor{})
			if err != nil {
				t.Fatal(err)
			}
			for id, name := range names {
				if err := s.Join(Consumer{ID: ConsumerID(id), Name: name, Account: &Account{}}); err != nil {
					t.Fatal(err)
				}
			}
			for _, n := range s.Ready().Notices {
				if n.Active {
					owned[n.To]++
				}
			}
		}
		least := partitions / len(names)
		for id := range names {
			if n := owned[ConsumerID(id)]; n != least && n != least+1 {
				t.Fatalf("%d of %d partitions at one of %d consumers", n, partitions, len(names))
			}
		}
	})
}

func TestS1_28_FailoverKeepsOrderAcrossAHandOver(t *testing.T) {
	runScript(t, "testdata/failover_newcomer_takes_over.txt")
}

func TestS1_29_CumulativeAckLeavesTheTail(t *testing.T) {
	runScript(t, "testdata/failover_cumulative.txt")
}

func TestS1_30_CumulativeAckIsOfOnePartition(t *testing.T) {
	runScript(t, "testdata/failover_cumulative_is_local.txt")
}

func TestS1_32_SharedSpreads(t *testing.T) {
	runScript(t, "testdata/shared_spread.txt")
}

// S1.32 without its tolerance: whatever portions messages come in, and on whatever partitions, members with credit to spare
// are never more than one message apart.
func TestS1_32_SharedIsFairWhateverThePortions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turn := new(Turn)
		states := make([]State, rapid.IntRange(1, 5).Draw(t, "partitions"))
		members := rapid.IntRange(1, 7).Draw(t, "members")
		for i := range states {
			states[i], _ = New(core.Shared, Placement{Partition: int32(i), Turn: turn}, core.Cursor{})
		}
		for id := range members {
			c := Consumer{ID: ConsumerID(id), Name: fmt.Sprint(id), Account: &Account{Permits: 1 << 40}}
			for _, s := range states {
				if err := s.Join(c); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := make([]int, members)
		for range rapid.IntRange(1, 30).Draw(t, "portions") {
			s := states[rapid.IntRange(0, len(states)-1).Draw(t, "partition")]
			for range rapid.IntRange(1, 200).Draw(t, "messages") {
				s.Add(Entry{Base: s.Next(), Count: 1})
			}
			for _, a := range s.Ready().Deliver {
				got[a.To]++
			}
			for _, n := range got {
				if n < got[0]-1 || n > got[0]+1 {
					t.Fatal(got)
				}
			}
		}
	})
}

// A Pulsar client makes a consumer of its own for each partition, so States that share a turn may have nobody in common; and
// some owners share none. Messages that come one by one, here and there, are spread all the same.
func TestS1_32_SharedIsFairToMembersOfOnePartition(t *testing.T) {
	for _, turn := range []*Turn{nil, new(Turn)} {
		const partitions, members, rounds = 4, 3, 30
		got := make([]int, members)
		var states []State
		for i := range partitions {
			s, _ := New(core.Shared, Placement{Partition: int32(i), Partitioned: true, Turn: turn}, core.Cursor{})
			for k := range members {
				c := Consumer{ID: ConsumerID(i*members + k), Account: &Account{Permits: 1 << 40}}
				if err := s.Join(c); err != nil {
					t.Fatal(err)
				}
			}
			states = append(states, s)
		}
		for range rounds {
			for _, s := range states {
				s.Add(Entry{Base: s.Next(), Count: 1})
				for _, a := range s.Ready().Deliver {
					got[a.To%members]++
				}
			}
			for _, n := range got {
				if n < got[0]-partitions/2 || n > got[0]+partitions/2 {
					t.Fatalf("client by client: %v", got)
				}
			}
		}
	}
}

func TestS1_33_SharedDisconnectRedelivers(t *testing.T) {
	runScript(t, "testdata/shared_disconnect.txt")
}

func TestS1_34_SharedIgnoresCumulativeAck(t *testing.T) {
	runScript(t, "testdata/shared_cumulative_is_ignored.txt")
}

func TestS1_36_KeysStick(t *testing.T) { runScript(t, "testdata/keyshared_sticks.txt") }

func TestS1_38_NackedComesBackToItsOwner(t *testing.T) { runScript(t, "testdata/keyshared_nack.txt") }

func TestS1_39_KeyDrainsBeforeItMoves(t *testing.T) {
	runScript(t, "testdata/keyshared_drains_in_order.txt")
}

func TestS1_40_NewcomerWaitsForItsKeysAlone(t *testing.T) {
	runScript(t, "testdata/keyshared_join_drains.txt")
}

func TestS1_41_AnyOrderDoesNotWait(t *testing.T) { runScript(t, "testdata/keyshared_any_order.txt") }

func TestS1_42_KeySharedIgnoresCumulativeAck(t *testing.T) {
	runScript(t, "testdata/keyshared_acks.txt")
}

func TestNewRefusesWhatIsNotThere(t *testing.T) {
	if s, err := New(99, Placement{}, core.Cursor{}); s != nil || !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestJoinRefusesNonsense(t *testing.T) {
	for _, mode := range []core.Mode{core.Exclusive, core.Failover, core.Shared, core.KeyShared} {
		s, err := New(mode, Placement{}, core.Cursor{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Join(Consumer{ID: 1}); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s, no account: %v", mode, err)
		}
		if err := s.Join(Consumer{ID: 1, Account: &Account{}}); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if err := s.Join(Consumer{ID: 1, Account: &Account{}}); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s, twice: %v", mode, err)
		}
		s.Leave(7)
		s.Nack(7, 3, 0)
		s.Hold(7, 3, 9)
		s.Expire(5)
		s.NackAll(7)
		s.Ack(7, core.Range{From: 5, To: 2})
		if want := s.Want(); want != 0 {
			t.Errorf("%s: wants %d without credit", mode, want)
		}
	}
}
