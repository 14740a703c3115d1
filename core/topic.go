package core

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Offset is the dense position of a message in its partition, from 0.
type Offset = int64

// Range is the half-open range of offsets [From, To).
type Range struct{ From, To Offset }

// Len is the number of offsets in the range.
func (r Range) Len() int64 { return r.To - r.From }

// Mode says how the consumers of a group share its messages.
type Mode uint8

// The four modes, named as Pulsar's subscription types are.
const (
	Exclusive Mode = iota
	Failover
	Shared
	KeyShared
)

func (m Mode) String() string {
	switch m {
	case Exclusive:
		return "exclusive"
	case Failover:
		return "failover"
	case Shared:
		return "shared"
	case KeyShared:
		return "key_shared"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// TopicName names a stream. It is comparable and can be a map key.
type TopicName struct {
	NonPersistent           bool
	Tenant, Namespace, Name string
}

const (
	persistent    = "persistent://"
	nonPersistent = "non-persistent://"
	maxTopicName  = 1 << 10 // bytes of the whole name; a longer one would not fit the clients' own limits
)

func (n TopicName) String() string {
	scheme := persistent
	if n.NonPersistent {
		scheme = nonPersistent
	}
	return scheme + n.Tenant + "/" + n.Namespace + "/" + n.Name
}

// ParseTopicName reads "name", "tenant/namespace/name" or the full form with its domain. The defaults complete a short
// name. The error wraps ErrInvalid.
// Spec: Pulsar TopicName (org.apache.pulsar.common.naming): domain, tenant, namespace, local name.
func ParseTopicName(s, defaultTenant, defaultNamespace string) (TopicName, error) {
	bad := func(why string) (TopicName, error) {
		return TopicName{}, fmt.Errorf("topic name %.80q: %s: %w", s, why, ErrInvalid)
	}
	if len(s) > maxTopicName || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return bad("too long or not text")
	}
	var n TopicName
	rest, full := strings.CutPrefix(s, persistent)
	if !full {
		if rest, full = strings.CutPrefix(s, nonPersistent); full {
			n.NonPersistent = true
		}
	}
	if !full && strings.Contains(s, "://") {
		return bad("unknown domain")
	}
	parts := strings.SplitN(rest, "/", 3)
	switch {
	case len(parts) == 1 && !full:
		n.Tenant, n.Namespace, n.Name = defaultTenant, defaultNamespace, rest
	case len(parts) == 3:
		n.Tenant, n.Namespace, n.Name = parts[0], parts[1], parts[2]
	default:
		return bad("want tenant/namespace/name")
	}
	if !validPart(n.Tenant) || !validPart(n.Namespace) {
		return bad("tenant or namespace")
	}
	if strings.TrimSpace(n.Name) == "" {
		return bad("empty name")
	}
	return n, nil
}

// Spec: Pulsar NamedEntity: [-=:.\w]*
func validPart(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-=:._", c) >= 0:
		default:
			return false
		}
	}
	return true
}
