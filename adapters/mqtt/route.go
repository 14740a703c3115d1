package mqtt

import (
	"strings"

	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
	"isthmus/routing"
)

// route is where publishes of one MQTT topic go.
type route struct {
	address string // the MQTT topic
	hash    uint32
	table   *routing.Table
	target  routing.Target
	topic   *engine.Topic
}

// routeCache remembers the routes of a client's last topics: a device has few. Owned by the reader.
type routeCache struct {
	routes []*route
	next   int
}

const cachedRoutes = 4

func (c *routeCache) find(topic []byte) *route {
	for _, r := range c.routes {
		if r.address == string(topic) {
			return r
		}
	}
	return nil
}

func (c *routeCache) add(r *route) {
	if len(c.routes) < cachedRoutes {
		c.routes = append(c.routes, r)
		return
	}
	c.routes[c.next] = r
	c.next = (c.next + 1) % cachedRoutes
}

// forget drops everything: what a topic was may have changed.
func (c *routeCache) forget() { *c = routeCache{} }

// route says where the message in sc goes. The answer of the routing table is used again while the table is the same
// and the answer depends on the topic and the client alone.
func (s *session) route(sc *scratch, topic []byte) (*route, error) {
	table := s.srv.routes()
	r := s.publisher.routes.find(topic)
	if r != nil && r.table == table && !r.target.Volatile {
		return r, nil
	}
	fresh := r == nil
	if fresh {
		address := strings.Clone(string(topic))
		r = &route{address: address, hash: addressHash(address)}
	}
	before := r.target.Topic
	sc.source = routing.Source{
		Topic: r.address, ClientID: s.id, Username: s.username, Properties: sc.props, Body: sc.packet.Payload,
	}
	r.table = table
	if err := table.Up(&sc.source, &r.target); err != nil {
		r.table = nil
		return nil, err
	}
	if fresh || r.topic == nil || before != r.target.Topic {
		if err := s.openRoute(r); err != nil {
			r.table, r.topic = nil, nil
			return nil, err
		}
	}
	if fresh {
		s.publisher.routes.add(r)
	}
	return r, nil
}

// openRoute asks whether the client may publish there, and finds or creates the topic.
func (s *session) openRoute(r *route) (err error) {
	if err := s.srv.ac.Allow(s.principal, auth.Produce, r.target.Topic.String()); err != nil {
		return err
	}
	r.topic, err = s.srv.eng.EnsureTopic(r.target.Topic, s.srv.eng.Defaults().Partitions)
	return err
}

// addressHash is the hash of an MQTT topic in the index of the log; 0 would mean none.
func addressHash(topic string) uint32 { return max(1, core.Murmur3_32(view(topic))) }
