package rocketmq

import (
	"errors"

	"isthmus/adapters/rocketmq/wire"
	"isthmus/core"
	"isthmus/core/engine"
)

// Failures that only this protocol has a word for.
var (
	errUnknownRequest   = errors.New("not supported")
	errSystemTopic      = errors.New("the topic is closed to clients")
	errBadSubscription  = errors.New("parse the consumer's subscription failed")
	errNoSubscription   = errors.New("the consumer's subscription not exist")
	errIllegalMessage   = errors.New("the message is illegal")
	errNothingCommitted = errors.New("not found, maybe this group consumer boot first")
	errNoConsumers      = errors.New("no consumer for this group")
	errNoMessage        = errors.New("no message")
	errIllegalOperation = errors.New("illegal operation")
	errHeldPulls        = errors.New("too many pulls are held for this connection")
)

// codes is the one place where a failure meets a response code. The first row that matches counts.
//
// Spec: RocketMQ ResponseCode@5.x
var codes = []struct {
	err  error
	code wire.Code
}{
	{errUnknownRequest, wire.NotSupported},
	{errSystemTopic, wire.NoPermission},
	{errBadSubscription, wire.SubscriptionBad},
	{errNoSubscription, wire.SubscriptionMissing},
	{errIllegalMessage, wire.MessageIllegal},
	{errNothingCommitted, wire.QueryNotFound},
	{errNoConsumers, wire.SystemError},
	{errNoMessage, wire.SystemError},
	{errHeldPulls, wire.SystemBusy},
	{errIllegalOperation, wire.IllegalOperation},
	{engine.ErrNotParked, wire.SystemError},
	{engine.ErrDelayTooLong, wire.MessageIllegal},
	{wire.ErrMalformed, wire.SystemError},
	{core.ErrInvalid, wire.InvalidParameter},
	{core.ErrUnsupported, wire.NotSupported},
	{core.ErrUnauthenticated, wire.NoPermission},
	{core.ErrForbidden, wire.NoPermission},
	{core.ErrTopicNotFound, wire.TopicNotExist},
	{core.ErrTopicExists, wire.TopicExistAlready},
	{core.ErrGroupNotFound, wire.GroupNotExist},
	{core.ErrOffsetOutOfRange, wire.PullOffsetMoved},
	{core.ErrTooLarge, wire.MessageIllegal},
	{core.ErrBusy, wire.SystemBusy},
	{core.ErrFenced, wire.SystemError},
	{core.ErrOverloaded, wire.FlowControl},
	{core.ErrUnavailable, wire.ServiceNotAvailable},
	{core.ErrClosed, wire.ServiceNotAvailable},
	{core.ErrBacklogFull, wire.SystemBusy},
	{core.ErrStorageFull, wire.ServiceNotAvailable}, // Spec: RocketMQ SendMessageProcessor: "the broker's disk is full"
}

// codeOf says how this protocol puts a failure; known is false for those that nobody foresaw.
func codeOf(err error) (code wire.Code, known bool) {
	for i := range codes {
		if errors.Is(err, codes[i].err) {
			return codes[i].code, true
		}
	}
	return wire.SystemError, false
}
