// Package api is our own HTTP API, mounted at /api/v1/ of the HTTP listener: topics, groups, and what an operator does to
// them. `isthmus topic` and `isthmus group` are clients of it (Client).
//
// Words: a record (types.go) is what JSON says of a topic, group or message; its field names are promised. A path names a
// topic as one segment, escaped: /api/v1/topics/event, or /api/v1/topics/persistent:%2F%2Facme%2Fout%2Fevent.
//
// Every request asks the engine and answers from memory; only a look at messages reads the log, and it is bounded in
// messages and bytes. There is no state here. An error is {"error": "…", "kind": "topic_not_found"} with the status of its
// kind (errors.go).
//
// Not supported: paging (lists are whole), watching, authentication beyond what the auth room decides about a principal
// without credentials.
package api
