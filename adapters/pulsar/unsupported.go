package pulsar

import (
	"fmt"

	"isthmus/adapters/pulsar/wire"
	"isthmus/core"
)

// unsupported answers what is not served with the response of its own kind, so that no client waits for ever. A command
// that no version of the protocol sends to a server ends the session.
func (s *session) unsupported(f wire.Frame) error {
	var q wire.Request
	switch f.Type {
	case wire.TypeConsumerStats, wire.TypeTcClientConnect, wire.TypeNewTxn, wire.TypeAddPartitionToTxn,
		wire.TypeAddSubscriptionToTxn, wire.TypeEndTxn, wire.TypeEndTxnOnPartition, wire.TypeEndTxnOnSubscription,
		wire.TypeWatchTopicList, wire.TypeWatchTopicListClose:
		if err := wire.Parse(f.Command, &q); err != nil {
			return err
		}
	default:
		return fmt.Errorf("not a client's command: %w", errProtocol)
	}
	err := fmt.Errorf("%v: %w", f.Type, core.ErrUnsupported)
	code := uint64(codeOf(err))
	switch f.Type {
	case wire.TypeConsumerStats:
		s.send(wire.TypeConsumerStatsReply, &wire.Reply{RequestID: q.RequestID, Code: code, HasCode: true, Message: err.Error()})
	case wire.TypeTcClientConnect:
		s.send(wire.TypeTcClientConnectReply, &wire.Reply{RequestID: q.RequestID, Code: code, HasCode: true, Message: err.Error()})
	case wire.TypeWatchTopicList, wire.TypeWatchTopicListClose:
		s.fail(q.RequestID, err) // Java falls back to polling
	default: // the transaction commands: each response has the number after its request
		s.send(f.Type+1, &wire.TxnReply{RequestID: q.RequestID, Code: code, HasCode: true, Message: err.Error()})
	}
	return nil
}
