// Package http is the gateway's HTTP listener: /healthz, /readyz, /metrics, and whatever other rooms hand to Mount, such
// as the Pulsar lookups. It knows no protocol and no engine.
//
// Words: alive (/healthz answers at all), ready (/readyz asks the function it was given), mounted (a handler of another
// room, under a pattern of net/http.ServeMux).
//
// Every connection, header, body and answer has a limit: see Config. A connection beyond Connections is closed at once;
// one that says nothing is closed after HeaderTimeout.
//
// Not supported yet: TLS, authentication, our own page. Our own API is a room of its own, adapters/http/api.
package http
