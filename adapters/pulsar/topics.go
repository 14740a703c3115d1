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

// resolve reads a topic name. A name that ends in -partition-N is a partition only of a topic that has more than N;
// without such a parent it cannot be found, because a topic of that name could never be told from a partition.
// Spec: Pulsar TopicName.getPartitionIndex: the last "-partition-", digits without leading zeros
func (s *Server) resolve(raw string) (target, error) {
	name, err := s.eng.ResolveName(protocolName, raw)
	if err != nil {
		return target{}, err
	}
	t := target{name: name, index: -1}
	if t.topic, err = s.eng.Topic(name); err == nil {
		return t, nil
	}
	base, index, ok := splitPartition(raw)
	if !ok {
		return t, nil
	}
	if t.name, err = s.eng.ResolveName(protocolName, base); err != nil {
		return target{}, err
	}
	parent, err := s.eng.Topic(t.name)
	if err != nil || index >= parent.Partitions() {
		return target{}, fmt.Errorf("%s: no such partition: %w", raw, core.ErrTopicNotFound)
	}
	t.topic, t.index = parent, index
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
