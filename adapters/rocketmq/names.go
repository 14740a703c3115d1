package rocketmq

import (
	"fmt"
	"strings"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

const protocol = "rocketmq"

const (
	maxTopic = 127 // rocketmq-client-go reads the topic's length from one byte
	maxGroup = 255
)

// systemTopics are closed to clients.
//
// Spec: RocketMQ TopicValidator@5.x
var systemTopics = setOf("TBW102", "SELF_TEST_TOPIC", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC",
	"RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC", "OFFSET_MOVED_EVENT", "RMQ_SYS_SCHEDULE_TOPIC", "rmq_sys_wheel_timer")

// checkName refuses what RocketMQ itself refuses.
//
// Spec: RocketMQ TopicValidator.validateTopic@5.x
func checkName(kind, s string, limit int) error {
	if s == "" || len(s) > limit {
		return fmt.Errorf("%s name of %d characters, 1 to %d are allowed: %w", kind, len(s), limit, core.ErrInvalid)
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '%', c == '|', c == '_', c == '-':
		default:
			return fmt.Errorf("%s name %.127q: allowed are letters, digits, %%, |, _ and -: %w", kind, s, core.ErrInvalid)
		}
	}
	return nil
}

func isRetry(topic string) bool { return strings.HasPrefix(topic, wire.RetryPrefix) }

// internal topics belong to a group or to the client library; they have one queue.
func internal(topic string) bool {
	return isRetry(topic) || strings.HasPrefix(topic, wire.DLQPrefix) || topic == wire.TraceTopic
}

// resolve turns the name that a client says into a core name. A declared name comes first; ns%topic is the topic in
// that namespace of the default tenant.
func (s *Server) resolve(topic string) (core.TopicName, error) {
	if err := checkName("topic", topic, maxTopic); err != nil {
		return core.TopicName{}, err
	}
	if systemTopics[topic] {
		return core.TopicName{}, fmt.Errorf("topic %s: %w", topic, errSystemTopic)
	}
	n, err := s.eng.ResolveName(protocol, topic)
	if n.NonPersistent {
		return n, fmt.Errorf("non-persistent topic %s: there is nothing to pull from: %w", topic, core.ErrUnsupported)
	}
	if err != nil || n.Name != topic {
		return n, err // no name, or a declared one
	}
	if ns, name, ok := strings.Cut(topic, "%"); ok && ns != "" && name != "" {
		n.Namespace, n.Name = ns, name
		if strings.Contains(ns, "|") {
			return n, fmt.Errorf("namespace %q: %w", ns, core.ErrInvalid)
		}
	}
	return n, nil
}

// topic looks up an existing topic.
func (s *Server) topic(name string) (*engine.Topic, error) {
	n, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	return s.eng.Topic(n)
}

// ensureTopic looks a topic up and creates it where that is allowed.
func (s *Server) ensureTopic(name string) (*engine.Topic, error) {
	n, err := s.resolve(name)
	if err != nil {
		return nil, err
	}
	queues := s.eng.Defaults().RocketMQQueues
	if internal(name) {
		queues = 0
	}
	return s.eng.EnsureTopic(n, queues)
}

// clientName is how clients of this protocol call a topic; false when they have no name for it.
func (s *Server) clientName(t *engine.Topic) (string, bool) {
	if a := t.Alias(protocol); a != "" {
		return a, true
	}
	d, n := s.eng.Defaults(), t.Name()
	name := n.Name
	if n.Namespace != d.Namespace {
		name = n.Namespace + "%" + n.Name
	}
	return name, n.Tenant == d.Tenant && checkName("topic", name, maxTopic) == nil
}
