package pulsar

import (
	"fmt"
	"strconv"
	"strings"

	"isthmus/core"
	"isthmus/core/engine"
)

const partitionMark = "-partition-"

// target is what a client's topic name means: a whole topic (index -1), or one partition of it.
type target struct {
	name  core.TopicName // of the whole topic
	topic *engine.Topic  // nil: it does not exist
	index int32
}

// String is the name with its partition.
func (t target) String() string {
	if t.index < 0 {
		return t.name.String()
	}
	return t.name.String() + partitionMark + strconv.Itoa(int(t.index))
}

// partition is the one log of a target, nil for a whole topic of several.
func (t target) partition() *engine.Partition {
	switch {
	case t.topic == nil:
		return nil
	case t.index >= 0:
		return t.topic.Partition(t.index)
	case t.topic.Logs() == 1:
		return t.topic.Partition(0)
	}
	return nil
}

// resolve reads a topic name. A name that ends in -partition-N is a partition of a topic that has more than N, also when
// somebody made a topic of that very name: its producers' messages have to reach the parent's groups. Without such a parent
// and without such a topic it cannot be found, and is not created.
// Spec: Pulsar TopicName.getPartitionIndex: the last "-partition-", digits without leading zeros
func (s *Server) resolve(raw string) (target, error) {
	name, err := s.eng.ResolveName(protocolName, raw)
	if err != nil {
		return target{}, err
	}
	base, index, ok := splitPartition(raw)
	if ok {
		parent, err := s.eng.ResolveName(protocolName, base)
		if err != nil {
			return target{}, err
		}
		if t, err := s.eng.Topic(parent); err == nil && index < t.Partitions() {
			return target{name: parent, topic: t, index: index}, nil
		}
	}
	t := target{name: name, index: -1}
	if t.topic, err = s.eng.Topic(name); err != nil && ok {
		return target{}, fmt.Errorf("%s: no such partition: %w", raw, core.ErrTopicNotFound)
	}
	return t, nil
}

func splitPartition(s string) (base string, index int32, ok bool) {
	i := strings.LastIndex(s, partitionMark)
	if i <= 0 {
		return s, 0, false
	}
	digits := s[i+len(partitionMark):]
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != digits {
		return s, 0, false
	}
	return s[:i], int32(n), true
}

// open resolves a name for PRODUCER and SUBSCRIBE and creates the topic where that is allowed.
func (s *Server) open(raw string, create bool) (target, error) {
	t, err := s.resolve(raw)
	if err != nil || t.topic != nil {
		return t, err
	}
	if !create {
		return t, fmt.Errorf("%s: %w", t.name, core.ErrTopicNotFound)
	}
	t.topic, err = s.eng.EnsureTopic(t.name, s.eng.Defaults().Partitions)
	return t, err
}
