package rocketmq

import (
	"context"

	"isthmus/adapters/rocketmq/wire"
)

// handler answers one request. What it returns as an error is answered by the table in errors.go.
type handler func(s *session, ctx context.Context, h *wire.Header, body []byte) error

// handlerOf is the list of what is served.
func handlerOf(code wire.Code) handler {
	switch code {
	case wire.SendMessage, wire.SendMessageV2:
		return (*session).sendOne
	case wire.SendBatch:
		return (*session).sendBatch
	case wire.PullMessage, wire.LitePullMessage:
		return (*session).pull
	case wire.QueryConsumerOffset:
		return (*session).queryOffset
	case wire.UpdateOffset:
		return (*session).updateOffset
	case wire.SearchOffset:
		return (*session).searchOffset
	case wire.GetMaxOffset:
		return (*session).maxOffset
	case wire.GetMinOffset:
		return (*session).minOffset
	case wire.GetEarliestTime:
		return (*session).earliestTime
	case wire.HeartBeat:
		return (*session).heartbeat
	case wire.UnregisterClient:
		return (*session).unregister
	case wire.CheckClientConfig:
		return (*session).checkConfig
	case wire.SendMessageBack:
		return (*session).sendBack
	case wire.EndTransaction:
		return (*session).endTransaction
	case wire.RecallMessage:
		return (*session).recall
	case wire.GetConsumerList:
		return (*session).consumerList
	case wire.LockBatch:
		return (*session).lock
	case wire.UnlockBatch:
		return (*session).unlock
	case wire.GetRoute:
		return (*session).route
	case wire.GetClusterInfo:
		return (*session).cluster
	case wire.GetTopicList:
		return (*session).topicList
	case wire.UpdateCreateTopic:
		return (*session).createTopic
	}
	return nil
}
