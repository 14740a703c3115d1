package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"isthmus/core"
	"isthmus/core/auth"
	"isthmus/core/engine"
)

// Prefix is where the handler is mounted.
const Prefix = "/api/v1/"

// handler answers from the engine. It has no state of its own; any goroutine may call it.
type handler struct {
	eng *engine.Engine
	who auth.Provider
	may auth.Access
	log *slog.Logger
}

// New returns the handler of everything under Prefix.
func New(eng *engine.Engine, who auth.Provider, may auth.Access, log *slog.Logger) http.Handler {
	h := &handler{eng, who, may, log}
	mux := http.NewServeMux()
	for _, r := range h.routes() {
		mux.HandleFunc(r.pattern, func(w http.ResponseWriter, q *http.Request) { h.serve(w, q, r) })
	}
	mux.HandleFunc(Prefix, func(w http.ResponseWriter, q *http.Request) {
		reply(w, http.StatusNotFound, problem{"no such path or method: " + q.Method + " " + q.URL.Path, "no_such_path"})
	})
	// A page of a stranger, open in a browser on this machine, must not delete topics.
	return http.NewCrossOriginProtection().Handler(mux)
}

// route is one thing that can be asked or told.
type route struct {
	pattern string
	action  auth.Action
	do      func(*request) (any, error)
}

func (h *handler) routes() []route {
	const topic, group = Prefix + "topics/{topic}", Prefix + "topics/{topic}/groups/{group}"
	return []route{
		{"GET " + Prefix + "topics", auth.Lookup, h.listTopics},
		{"GET " + topic, auth.Lookup, h.showTopic},
		{"GET " + topic + "/messages", auth.Consume, h.peek},
		{"PUT " + topic, auth.Admin, h.createTopic},
		{"DELETE " + topic, auth.Admin, h.deleteTopic},
		{"POST " + topic + "/grow", auth.Admin, h.growTopic},
		{"POST " + topic + "/empty", auth.Admin, h.emptyTopic},
		{"GET " + Prefix + "groups", auth.Lookup, h.listGroups},
		{"GET " + group, auth.Lookup, h.showGroup},
		{"PUT " + group, auth.Admin, h.createGroup},
		{"DELETE " + group, auth.Admin, h.deleteGroup},
		{"POST " + group + "/reset", auth.Admin, h.resetGroup},
		{"POST " + group + "/skip", auth.Admin, h.skipGroup},
	}
}

// request is one request of a client that we know.
type request struct {
	*http.Request
	h         *handler
	principal auth.Principal
	action    auth.Action
}

func (h *handler) serve(w http.ResponseWriter, q *http.Request, r route) {
	v, err := h.run(&request{Request: q, h: h, action: r.action}, r)
	switch {
	case err != nil:
		f := faultOf(err)
		if f.status == http.StatusInternalServerError {
			h.log.Error("request failed", "pattern", r.pattern, "err", err)
		}
		reply(w, f.status, problem{err.Error(), f.kind})
	case v == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		reply(w, http.StatusOK, v)
	}
}

func (h *handler) run(q *request, r route) (v any, err error) {
	q.principal, err = h.who.Authenticate(q.Context(), auth.Credentials{Protocol: "http", Listener: "http", Remote: q.RemoteAddr})
	if err != nil {
		return nil, err
	}
	return r.do(q)
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that has gone does not matter here
}

// body decodes the request's JSON into v; unknown fields are refused, an empty body leaves v alone.
func (q *request) body(v any) error {
	d := json.NewDecoder(q.Body)
	d.DisallowUnknownFields()
	switch err := d.Decode(v); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("body: %w: %w", err, core.ErrInvalid)
	}
	if d.More() {
		return fmt.Errorf("body: more than one value: %w", core.ErrInvalid)
	}
	return nil
}

// name is the topic of the path, if the principal may do to it what the route does.
func (q *request) name() (core.TopicName, error) {
	n, err := q.h.eng.ResolveName("http", q.PathValue("topic"))
	if err != nil {
		return n, err
	}
	return n, q.h.may.Allow(q.principal, q.action, n.String())
}

func (q *request) topic() (*engine.Topic, error) {
	n, err := q.name()
	if err != nil {
		return nil, err
	}
	return q.h.eng.Topic(n)
}

func (q *request) group() (*engine.Group, error) {
	t, err := q.topic()
	if err != nil {
		return nil, err
	}
	if err := q.h.may.Allow(q.principal, q.action, t.Name().String()+"#"+q.PathValue("group")); err != nil {
		return nil, err
	}
	return t.Group(q.PathValue("group"))
}
