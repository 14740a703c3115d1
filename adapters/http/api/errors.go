package api

import (
	"context"
	"errors"
	"net/http"

	"isthmus/core"
)

// fault is how this API puts a core error.
type fault struct {
	err    error
	status int
	kind   string
}

// faults is the only place where a status stands beside a core error. The first that matches counts.
var faults = []fault{
	{core.ErrTopicNotFound, http.StatusNotFound, "topic_not_found"},
	{core.ErrGroupNotFound, http.StatusNotFound, "group_not_found"},
	{core.ErrTopicExists, http.StatusConflict, "topic_exists"},
	{core.ErrBusy, http.StatusConflict, "busy"},
	{core.ErrFenced, http.StatusConflict, "fenced"},
	{core.ErrInvalid, http.StatusBadRequest, "invalid"},
	{core.ErrUnsupported, http.StatusNotImplemented, "unsupported"},
	{core.ErrUnauthenticated, http.StatusUnauthorized, "unauthenticated"},
	{core.ErrForbidden, http.StatusForbidden, "forbidden"},
	{core.ErrOffsetOutOfRange, http.StatusRequestedRangeNotSatisfiable, "offset_out_of_range"},
	{core.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	{core.ErrBacklogFull, http.StatusInsufficientStorage, "backlog_full"},
	{core.ErrStorageFull, http.StatusInsufficientStorage, "storage_full"},
	{core.ErrOverloaded, http.StatusTooManyRequests, "overloaded"},
	{core.ErrUnavailable, http.StatusServiceUnavailable, "unavailable"},
	{core.ErrClosed, http.StatusServiceUnavailable, "closed"},
	{context.Canceled, http.StatusServiceUnavailable, "closed"},
}

func faultOf(err error) fault {
	for _, f := range faults {
		if errors.Is(err, f.err) {
			return f
		}
	}
	return fault{err, http.StatusInternalServerError, "internal"}
}

// problem is the body of an answer that is an error.
type problem struct {
	Error string `json:"error"`
	Kind  string `json:"kind"`
}
