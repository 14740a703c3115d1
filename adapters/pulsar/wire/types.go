package wire

import "strconv"

// Type is the number of a command; the field of BaseCommand that holds it has the same number.
type Type uint32

// The commands that are spoken.
const (
	TypeConnect                   Type = 2
	TypeConnected                 Type = 3
	TypeSubscribe                 Type = 4
	TypeProducer                  Type = 5
	TypeSend                      Type = 6
	TypeSendReceipt               Type = 7
	TypeSendError                 Type = 8
	TypeMessage                   Type = 9
	TypeAck                       Type = 10
	TypeFlow                      Type = 11
	TypeUnsubscribe               Type = 12
	TypeSuccess                   Type = 13
	TypeError                     Type = 14
	TypeCloseProducer             Type = 15
	TypeCloseConsumer             Type = 16
	TypeProducerSuccess           Type = 17
	TypePing                      Type = 18
	TypePong                      Type = 19
	TypeRedeliver                 Type = 20
	TypePartitionedMetadata       Type = 21
	TypePartitionedMetadataReply  Type = 22
	TypeLookup                    Type = 23
	TypeLookupReply               Type = 24
	TypeConsumerStats             Type = 25
	TypeConsumerStatsReply        Type = 26
	TypeSeek                      Type = 28
	TypeGetLastMessageID          Type = 29
	TypeGetLastMessageIDReply     Type = 30
	TypeActiveConsumerChange      Type = 31
	TypeGetTopicsOfNamespace      Type = 32
	TypeGetTopicsOfNamespaceReply Type = 33
	TypeGetSchema                 Type = 34
	TypeGetSchemaReply            Type = 35
	TypeAuthChallenge             Type = 36
	TypeAuthResponse              Type = 37
	TypeAckResponse               Type = 38
	TypeGetOrCreateSchema         Type = 39
	TypeGetOrCreateSchemaReply    Type = 40
	TypeNewTxn                    Type = 50
	TypeNewTxnReply               Type = 51
	TypeAddPartitionToTxn         Type = 52
	TypeAddPartitionToTxnReply    Type = 53
	TypeAddSubscriptionToTxn      Type = 54
	TypeAddSubscriptionToTxnReply Type = 55
	TypeEndTxn                    Type = 56
	TypeEndTxnReply               Type = 57
	TypeEndTxnOnPartition         Type = 58
	TypeEndTxnOnPartitionReply    Type = 59
	TypeEndTxnOnSubscription      Type = 60
	TypeEndTxnOnSubscriptionReply Type = 61
	TypeTcClientConnect           Type = 62
	TypeTcClientConnectReply      Type = 63
	TypeWatchTopicList            Type = 64
	TypeWatchTopicListSuccess     Type = 65
	TypeWatchTopicUpdate          Type = 66
	TypeWatchTopicListClose       Type = 67
)

var typeNames = map[Type]string{
	TypeConnect: "CONNECT", TypeConnected: "CONNECTED", TypeSubscribe: "SUBSCRIBE", TypeProducer: "PRODUCER",
	TypeSend: "SEND", TypeSendReceipt: "SEND_RECEIPT", TypeSendError: "SEND_ERROR", TypeMessage: "MESSAGE",
	TypeAck: "ACK", TypeFlow: "FLOW", TypeUnsubscribe: "UNSUBSCRIBE", TypeSuccess: "SUCCESS", TypeError: "ERROR",
	TypeCloseProducer: "CLOSE_PRODUCER", TypeCloseConsumer: "CLOSE_CONSUMER", TypeProducerSuccess: "PRODUCER_SUCCESS",
	TypePing: "PING", TypePong: "PONG", TypeRedeliver: "REDELIVER_UNACKNOWLEDGED_MESSAGES",
	TypePartitionedMetadata: "PARTITIONED_METADATA", TypePartitionedMetadataReply: "PARTITIONED_METADATA_RESPONSE",
	TypeLookup: "LOOKUP", TypeLookupReply: "LOOKUP_RESPONSE", TypeConsumerStats: "CONSUMER_STATS",
	TypeConsumerStatsReply: "CONSUMER_STATS_RESPONSE", TypeSeek: "SEEK", TypeGetLastMessageID: "GET_LAST_MESSAGE_ID",
	TypeGetLastMessageIDReply: "GET_LAST_MESSAGE_ID_RESPONSE", TypeActiveConsumerChange: "ACTIVE_CONSUMER_CHANGE",
	TypeGetTopicsOfNamespace: "GET_TOPICS_OF_NAMESPACE", TypeGetTopicsOfNamespaceReply: "GET_TOPICS_OF_NAMESPACE_RESPONSE",
	TypeGetSchema: "GET_SCHEMA", TypeGetSchemaReply: "GET_SCHEMA_RESPONSE", TypeAuthChallenge: "AUTH_CHALLENGE",
	TypeAuthResponse: "AUTH_RESPONSE", TypeAckResponse: "ACK_RESPONSE", TypeGetOrCreateSchema: "GET_OR_CREATE_SCHEMA",
	TypeGetOrCreateSchemaReply: "GET_OR_CREATE_SCHEMA_RESPONSE", TypeNewTxn: "NEW_TXN",
	TypeNewTxnReply: "NEW_TXN_RESPONSE", TypeAddPartitionToTxn: "ADD_PARTITION_TO_TXN",
	TypeAddPartitionToTxnReply: "ADD_PARTITION_TO_TXN_RESPONSE", TypeAddSubscriptionToTxn: "ADD_SUBSCRIPTION_TO_TXN",
	TypeAddSubscriptionToTxnReply: "ADD_SUBSCRIPTION_TO_TXN_RESPONSE", TypeEndTxn: "END_TXN",
	TypeEndTxnReply: "END_TXN_RESPONSE", TypeEndTxnOnPartition: "END_TXN_ON_PARTITION",
	TypeEndTxnOnPartitionReply: "END_TXN_ON_PARTITION_RESPONSE", TypeEndTxnOnSubscription: "END_TXN_ON_SUBSCRIPTION",
	TypeEndTxnOnSubscriptionReply: "END_TXN_ON_SUBSCRIPTION_RESPONSE", TypeTcClientConnect: "TC_CLIENT_CONNECT_REQUEST",
	TypeTcClientConnectReply: "TC_CLIENT_CONNECT_RESPONSE", TypeWatchTopicList: "WATCH_TOPIC_LIST",
	TypeWatchTopicListSuccess: "WATCH_TOPIC_LIST_SUCCESS", TypeWatchTopicUpdate: "WATCH_TOPIC_UPDATE",
	TypeWatchTopicListClose: "WATCH_TOPIC_LIST_CLOSE",
}

func (t Type) String() string {
	if s, ok := typeNames[t]; ok {
		return s
	}
	return "command(" + strconv.FormatUint(uint64(t), 10) + ")"
}

// ServerError is Pulsar's list of failures.
type ServerError int32

// The failures, by their numbers in PulsarApi.proto.
const (
	UnknownError ServerError = iota
	MetadataError
	PersistenceError
	AuthenticationError
	AuthorizationError
	ConsumerBusy
	ServiceNotReady
	ProducerBlockedQuotaExceededError
	ProducerBlockedQuotaExceededException
	ChecksumError
	UnsupportedVersionError
	TopicNotFound
	SubscriptionNotFound
	ConsumerNotFound
	TooManyRequests
	TopicTerminatedError
	ProducerBusy
	InvalidTopicName
	IncompatibleSchema
	ConsumerAssignError
	TransactionCoordinatorNotFound
	InvalidTxnStatus
	NotAllowedError
	TransactionConflict
	TransactionNotFound
	ProducerFenced
)

// Subscription types, CommandSubscribe.SubType.
const (
	SubExclusive int32 = iota
	SubShared
	SubFailover
	SubKeyShared
)

// NoRequest is the request id of commands that the server sends unasked.
const NoRequest = ^uint64(0)
