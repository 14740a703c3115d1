package rocketmq

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
)

// DelayLevels are those of real brokers.
//
// Spec: RocketMQ MessageStoreConfig.messageDelayLevel@5.x
func DelayLevels() []time.Duration {
	return []time.Duration{
		time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute,
		4 * time.Minute, 5 * time.Minute, 6 * time.Minute, 7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute,
		20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
	}
}

// levelDelay is what a level means; one beyond the last counts as the last.
func (c *Config) levelDelay(level int64) time.Duration {
	if level <= 0 {
		return 0
	}
	return c.DelayLevels[min(level, int64(len(c.DelayLevels)))-1]
}

// timing is what a message's properties say about when it is to be seen.
type timing struct {
	half   bool
	wait   time.Duration // after it was sent; of a half message after the commit
	due    int64         // or at this time, unix ms
	immune time.Duration // a half message is not asked about before
	unique []byte        // UNIQ_KEY
}

func (w *timing) parks() bool { return w.half || w.wait > 0 || w.due > 0 }

// timingOf reads it. DELAY and TRAN_MSG have done their work when the message is seen, so they are taken out of n.
//
// Spec: RocketMQ ScheduleMessageService.messageTimeup, TimerMessageStore, MessageConst@5.x: a level wins over a timer, and
// TIMER_DELAY_SEC over TIMER_DELAY_MS over TIMER_DELIVER_MS
func (s *session) timingOf(n *native) (w timing, err error) {
	w.immune = s.srv.cfg.TransactionTimeout
	level, timers := int64(0), [4]int64{}
	for b := n.properties; ; {
		name, value, rest, ok := wire.NextProperty(b)
		if !ok {
			break
		}
		b = rest
		number := (*int64)(nil)
		immune := int64(0)
		switch string(name) {
		case wire.PropTransaction:
			w.half = strings.EqualFold(string(value), "true")
		case wire.PropUniqKey:
			w.unique = value
		case wire.PropImmunity:
			number = &immune
		case wire.PropDelay:
			number = &level
		case wire.PropTimerDelaySec:
			number = &timers[0]
		case wire.PropTimerDelayMs:
			number = &timers[1]
		case wire.PropTimerDeliverMs:
			number = &timers[2]
		case wire.PropStartDeliver: // what older clients of the cloud service say
			number = &timers[3]
		}
		if number == nil {
			continue
		}
		if *number, err = strconv.ParseInt(string(value), 10, 64); err != nil {
			return w, fmt.Errorf("property %s is %.40q: %w", name, value, errIllegalMessage)
		}
		if immune > 0 {
			w.immune = ticks(immune, time.Second)
		}
	}
	w.half = w.half && !(n.reconsume > 0 && level > 0) // a retry of a message that was once half
	switch {
	case level > 0:
		w.wait = s.srv.cfg.levelDelay(level)
	case timers[0] > 0:
		w.wait = ticks(timers[0], time.Second)
	case timers[1] > 0:
		w.wait = ticks(timers[1], time.Millisecond)
	case timers[2] > 0:
		w.due = timers[2]
	default:
		w.due = max(timers[3], 0)
	}
	tran := n.sysFlag & wire.SysTranMask
	if tran != 0 && (!w.half || tran != wire.SysPrepared) {
		return w, fmt.Errorf("transaction type %#x of a message that is no half message: %w", tran, core.ErrUnsupported)
	}
	if w.half {
		n.sysFlag = n.sysFlag&^wire.SysTranMask | wire.SysCommitted // as it will be seen
	}
	if w.half || level > 0 {
		s.properties = wire.AppendWithout(s.properties[:0], n.properties, wire.PropTransaction, wire.PropDelay)
		n.properties = s.properties
	}
	return w, nil
}

// ticks is a duration that cannot overflow; the engine refuses what is too long.
func ticks(n int64, unit time.Duration) time.Duration {
	return time.Duration(min(n, int64((1<<62)/unit))) * unit
}
