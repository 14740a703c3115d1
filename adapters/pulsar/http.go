package pulsar

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/auth"
)

// HTTP serves the lookups of clients whose service URL is http://. Mount it at /lookup/ and /admin/.
// Spec: Pulsar HTTP lookup: /lookup/v2/topic, /admin/v2/…/partitions, /admin/v2/namespaces/…/topics, /admin/v2/schemas
func (s *Server) HTTP() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(q *query) (any, error)) {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, f) })
	}
	handle("/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}", s.httpLookup)
	handle("/admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitions", s.httpPartitions)
	handle("/admin/v2/namespaces/{tenant}/{namespace}/topics", s.httpTopics)
	handle("/admin/v2/schemas/{tenant}/{namespace}/{topic}/schema", s.httpSchema)
	handle("/admin/v2/schemas/{tenant}/{namespace}/{topic}/schema/{version}", s.httpSchema)
	return mux
}

// query is one request of a client that we know.
type query struct {
	r         *http.Request
	principal auth.Principal
}

func (q *query) namespace() string { return q.r.PathValue("tenant") + "/" + q.r.PathValue("namespace") }

// topic is the full name in the path.
func (q *query) topic() string {
	domain := q.r.PathValue("domain")
	if domain == "" {
		domain = "persistent"
	}
	return domain + "://" + q.namespace() + "/" + q.r.PathValue("topic")
}

// statusOf is what a Pulsar code is over HTTP.
var statusOf = map[wire.ServerError]int{
	wire.AuthenticationError: http.StatusUnauthorized, wire.AuthorizationError: http.StatusForbidden,
	wire.TopicNotFound: http.StatusNotFound, wire.SubscriptionNotFound: http.StatusNotFound, wire.InvalidTopicName: http.StatusPreconditionFailed,
	wire.NotAllowedError: http.StatusMethodNotAllowed, wire.TooManyRequests: http.StatusTooManyRequests, wire.ServiceNotReady: http.StatusServiceUnavailable,
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, f func(q *query) (any, error)) {
	q := &query{r: r}
	var v any
	var err error
	if q.principal, err = s.auth.Authenticate(r.Context(), credentials(r)); err == nil {
		v, err = f(q)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status, ok := statusOf[codeOf(err)]
		if !ok {
			status = http.StatusInternalServerError
		}
		w.WriteHeader(status)
		v = map[string]string{"reason": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(v) // a client that has gone does not matter here
}

// credentials reads the Authorization header.
func credentials(r *http.Request) auth.Credentials {
	c := auth.Credentials{Protocol: protocolName, Listener: "http", Remote: r.RemoteAddr, Method: "none"}
	kind, data, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch strings.ToLower(kind) {
	case "bearer":
		c.Method, c.Data = "token", []byte(data)
	case "basic":
		c.Method = "basic"
		c.Data, _ = base64.StdEncoding.DecodeString(data)
	}
	if m := r.Header.Get("X-Pulsar-Auth-Method-Name"); m != "" {
		c.Method = m
	}
	return c
}

func (s *Server) httpTarget(q *query) (target, error) {
	t, err := s.resolve(q.topic())
	if err != nil {
		return t, err
	}
	return t, s.mayDo(q.principal, t.name, auth.Produce, auth.Consume, auth.Lookup)
}

func (s *Server) httpLookup(q *query) (any, error) {
	if _, err := s.httpTarget(q); err != nil {
		return nil, err
	}
	url, proxy := s.advertised()
	if proxy { // there is no such word over HTTP: name the host that the client used
		host := q.r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		_, port, _ := net.SplitHostPort(s.Addr().String())
		url = "pulsar://" + net.JoinHostPort(strings.Trim(host, "[]"), port)
	}
	return map[string]string{"brokerUrl": url, "nativeUrl": url, "httpUrl": "http://" + q.r.Host}, nil
}

func (s *Server) httpPartitions(q *query) (any, error) {
	create, err := strconv.ParseBool(q.r.FormValue("checkAllowAutoCreation"))
	if _, denied := s.httpTarget(q); denied != nil {
		return nil, denied
	}
	n, err := s.partitionsOf(q.topic(), create && err == nil)
	if errors.Is(err, core.ErrTopicNotFound) && !create {
		n, err = 0, nil // what brokers answer to a plain question
	}
	return map[string]any{"partitions": n, "deleted": false}, err
}

func (s *Server) httpTopics(q *query) (any, error) {
	mode := map[string]int32{"NON_PERSISTENT": 1, "ALL": 2}[strings.ToUpper(q.r.FormValue("mode"))]
	names := s.topicsOf(q.namespace(), mode, func(n core.TopicName) bool {
		return s.mayDo(q.principal, n, auth.Produce, auth.Consume, auth.Lookup) == nil
	})
	if d := s.eng.Defaults(); len(names) == 0 && q.namespace() != d.Tenant+"/"+d.Namespace {
		return nil, &missing{"Namespace does not exist"}
	}
	return names, nil
}

// missing is a 404 with the text that clients know.
type missing struct{ text string }

func (m *missing) Error() string { return m.text }
func (m *missing) Unwrap() error { return core.ErrTopicNotFound }

var schemaNames = map[int32]string{
	0: "NONE", 1: "STRING", 2: "JSON", 3: "PROTOBUF", 4: "AVRO", 5: "BOOLEAN", 6: "INT8", 7: "INT16", 8: "INT32", 9: "INT64", 10: "FLOAT",
	11: "DOUBLE", 12: "DATE", 13: "TIME", 14: "TIMESTAMP", 15: "KEY_VALUE", 16: "INSTANT", 17: "LOCAL_DATE", 18: "LOCAL_TIME",
	19: "LOCAL_DATE_TIME", 20: "PROTOBUF_NATIVE",
}

func (s *Server) httpSchema(q *query) (any, error) {
	t, err := s.httpTarget(q)
	if err != nil {
		return nil, err
	}
	var version []byte
	if v := q.r.PathValue("version"); v != "" {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			version = binary.BigEndian.AppendUint64(nil, uint64(n))
		} else {
			version = []byte{}
		}
	}
	schema, v, ok := s.schemas.get(t.name.String(), version)
	if !ok {
		return nil, &missing{"Schema not found"}
	}
	return map[string]any{
		"version": binary.BigEndian.Uint64(v), "type": schemaNames[schema.Type], "timestamp": 0, "data": string(schema.Data), "properties": map[string]string{},
	}, nil
}
