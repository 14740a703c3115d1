package pulsar

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/auth"
)

// maxPattern bounds what is matched here; a longer pattern is left to the client.
const maxPattern = 50

// GET_TOPICS_OF_NAMESPACE: partitions by their own names. A namespace without topics is empty, not an error.
// Spec: Pulsar CommandGetTopicsOfNamespaceResponse, PIP-145
func (s *session) topicsOfNamespace(b []byte) error {
	var q wire.GetTopics
	if err := wire.Parse(b, &q); err != nil {
		return err
	}
	names := s.srv.topicsOf(q.Namespace, q.Mode, s.visible)
	r := wire.GetTopicsReply{RequestID: q.RequestID, Changed: true}
	if re := compilePattern(q.Pattern); re != nil {
		names = slices.DeleteFunc(names, func(n string) bool { return !matches(re, n) })
		r.Filtered = true
	}
	r.Hash = topicsHash(names)
	if q.Hash != "" && q.Hash == r.Hash {
		r.Changed = false
	} else {
		r.Topics = names
	}
	s.send(wire.TypeGetTopicsOfNamespaceReply, &r)
	return nil
}

func (s *session) visible(n core.TopicName) bool {
	return s.allow(n, auth.Produce, auth.Consume, auth.Lookup) == nil
}

// topicsOf lists the topics of a namespace in order. mode: 0 persistent, 1 non-persistent, 2 all.
func (s *Server) topicsOf(namespace string, mode int32, visible func(core.TopicName) bool) []string {
	names := []string{}
	if mode == 1 {
		return names // there are none
	}
	for _, t := range s.eng.Topics() {
		n := t.Name()
		if n.Tenant+"/"+n.Namespace != namespace || strings.HasPrefix(n.Name, "__") || !visible(n) {
			continue
		}
		if t.Partitions() == 0 {
			names = append(names, n.String())
		}
		for i := range t.Partitions() {
			names = append(names, n.String()+partitionMark+strconv.Itoa(int(i)))
		}
	}
	return names
}

func compilePattern(p string) *regexp.Regexp {
	if p == "" || len(p) > maxPattern {
		return nil
	}
	re, err := regexp.Compile("^(?:" + withoutDomain(p) + ")$")
	if err != nil {
		return nil // a dialect that we do not read: the client filters
	}
	return re
}

// matches compares without domain and partition.
func matches(re *regexp.Regexp, name string) bool {
	base, _, _ := splitPartition(name)
	return re.MatchString(withoutDomain(base))
}

func withoutDomain(s string) string {
	if i := strings.Index(s, "://"); i >= 0 {
		return s[i+3:]
	}
	return s
}

// topicsHash is CRC32C of the sorted names joined by commas, as Guava prints it.
// Spec: Pulsar TopicList.calculateHash: eight hex digits, little endian
func topicsHash(names []string) string {
	sorted := slices.Sorted(slices.Values(names))
	sum := crc32.Checksum([]byte(strings.Join(sorted, ",")), crc32.MakeTable(crc32.Castagnoli))
	return hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, sum))
}
