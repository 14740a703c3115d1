package rocketmq

import (
	"context"

	"isthmus/adapters/rocketmq/wire"
)

// sendBack handles code 36. Until retries exist it is refused: clients then keep the message and consume it again
// themselves after five seconds, so it is neither lost nor taken for consumed.
//
// Spec: RocketMQ RequestCode.CONSUMER_SEND_MSG_BACK=36; SendMessageProcessor.consumerSendMsgBack@5.x
func (s *session) sendBack(context.Context, *wire.Header, []byte) error {
	return errSendBackUnsupported
}
