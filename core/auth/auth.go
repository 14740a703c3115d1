// Package auth says who a client is and what it may do: the seam that every adapter asks on connect, produce, consume
// and lookup. One access list serves all protocols.
//
// Words: a Provider turns Credentials into a Principal; Access decides whether a Principal may take an Action on a
// resource (a topic name, or a group as "topic#group").
//
// Not supported yet: passwords, tokens, client certificates and access lists. Anonymous is the only tenant of both
// seams, and has to be asked for in the configuration.
package auth

import "context"

// Credentials are what a client showed. Empty fields were not given.
type Credentials struct {
	Protocol, Listener string
	Remote             string // address of the peer
	ClientID, Username string
	Password           []byte
	Method             string // Pulsar auth method name, MQTT 5 authentication method
	Data               []byte
}

// Principal is an authenticated client. Its tenant completes short topic names.
type Principal struct{ Tenant, Name string }

// Action is what a client wants to do.
type Action uint8

// The actions of all protocols.
const (
	Connect Action = iota
	Produce
	Consume
	Lookup
	Admin
)

// Provider tells who a client is. Errors wrap core.ErrUnauthenticated or core.ErrUnavailable. Any goroutine may call it.
type Provider interface {
	Authenticate(ctx context.Context, c Credentials) (Principal, error)
}

// Access tells whether a principal may do something; nil means yes, otherwise the error wraps core.ErrForbidden. It answers from
// memory, and any goroutine may call it.
type Access interface {
	Allow(p Principal, a Action, resource string) error
}

// Anonymous lets everybody in, under one tenant, and allows everything.
type Anonymous struct{ Tenant string }

// Authenticate accepts any credentials.
func (a Anonymous) Authenticate(_ context.Context, c Credentials) (Principal, error) {
	return Principal{Tenant: a.Tenant, Name: c.Username}, nil
}

// Allow allows.
func (a Anonymous) Allow(Principal, Action, string) error { return nil }
