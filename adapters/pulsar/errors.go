package pulsar

import (
	"errors"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// What this protocol refuses in words that core does not have.
var (
	errNotAllowed   = errors.New("not allowed")
	errProducerBusy = errors.New("producer busy")
	errNotConnected = errors.New("not connected") // a consumer id that is not there
	errInProgress   = errors.New("in progress")
	errChecksum     = errors.New("checksum mismatch")
	errMetadata     = errors.New("bad message metadata")
	errNoSchema     = errors.New("topic has no schema")
	errHold         = errors.New("wait until there is room") // towards producers of a topic with when_full: block
)

// row says how one failure is put: in general, and in LOOKUP_RESPONSE and PARTITIONED_METADATA_RESPONSE, where Go and
// Java clients drop the connection on ServiceNotReady.
type row struct {
	err          error
	code, lookup wire.ServerError
}

// table is the one place where an error meets a Pulsar code. The first match counts.
var table = []row{
	{errNotAllowed, wire.NotAllowedError, wire.NotAllowedError},
	{errProducerBusy, wire.ProducerBusy, wire.ProducerBusy},
	{errNotConnected, wire.MetadataError, wire.MetadataError},
	{errInProgress, wire.ServiceNotReady, wire.TooManyRequests},
	{errChecksum, wire.ChecksumError, wire.ChecksumError},
	{errMetadata, wire.MetadataError, wire.MetadataError},
	{errNoSchema, wire.TopicNotFound, wire.TopicNotFound},

	{errHold, wire.ProducerBlockedQuotaExceededError, wire.TooManyRequests},

	{engine.ErrSlots, wire.ConsumerAssignError, wire.ConsumerAssignError},

	{core.ErrInvalid, wire.InvalidTopicName, wire.InvalidTopicName},
	{core.ErrUnsupported, wire.NotAllowedError, wire.NotAllowedError},
	{core.ErrUnauthenticated, wire.AuthenticationError, wire.AuthenticationError},
	{core.ErrForbidden, wire.AuthorizationError, wire.AuthorizationError},
	{core.ErrTopicNotFound, wire.TopicNotFound, wire.TopicNotFound},
	{core.ErrTopicExists, wire.NotAllowedError, wire.NotAllowedError},
	{core.ErrGroupNotFound, wire.SubscriptionNotFound, wire.SubscriptionNotFound},
	{core.ErrOffsetOutOfRange, wire.MetadataError, wire.MetadataError},
	{core.ErrTooLarge, wire.NotAllowedError, wire.NotAllowedError},
	{core.ErrBusy, wire.ConsumerBusy, wire.ConsumerBusy},
	{core.ErrFenced, wire.ProducerFenced, wire.ProducerFenced},
	{core.ErrOverloaded, wire.TooManyRequests, wire.TooManyRequests},
	{core.ErrUnavailable, wire.ServiceNotReady, wire.TooManyRequests},
	{core.ErrClosed, wire.ServiceNotReady, wire.TooManyRequests},
	{core.ErrBacklogFull, wire.ProducerBlockedQuotaExceededException, wire.TooManyRequests},
	{core.ErrStorageFull, wire.ServiceNotReady, wire.TooManyRequests},
}

func rowOf(err error) row {
	for _, r := range table {
		if errors.Is(err, r.err) {
			return r
		}
	}
	return row{err, wire.UnknownError, wire.UnknownError}
}

// codeOf is the code of a failure in ERROR and its like.
func codeOf(err error) wire.ServerError { return rowOf(err).code }

// lookupCodeOf is the code of a failure in the two lookup responses.
func lookupCodeOf(err error) wire.ServerError { return rowOf(err).lookup }
