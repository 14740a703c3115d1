package wire

// Code is a request code or a response code.
type Code = int32

// Request codes.
//
// Spec: RocketMQ RequestCode@5.x
const (
	SendMessage         Code = 10
	PullMessage         Code = 11
	QueryConsumerOffset Code = 14
	UpdateOffset        Code = 15
	UpdateCreateTopic   Code = 17
	SearchOffset        Code = 29
	GetMaxOffset        Code = 30
	GetMinOffset        Code = 31
	GetEarliestTime     Code = 32
	HeartBeat           Code = 34
	UnregisterClient    Code = 35
	SendMessageBack     Code = 36
	EndTransaction      Code = 37
	GetConsumerList     Code = 38
	CheckTransaction    Code = 39
	NotifyConsumers     Code = 40
	LockBatch           Code = 41
	UnlockBatch         Code = 42
	CheckClientConfig   Code = 46
	GetRoute            Code = 105
	GetClusterInfo      Code = 106
	GetTopicList        Code = 206
	SendMessageV2       Code = 310
	SendBatch           Code = 320
	LitePullMessage     Code = 361
	RecallMessage       Code = 370
)

// Response codes.
//
// Spec: RocketMQ ResponseCode@5.x
const (
	Success              Code = 0
	SystemError          Code = 1
	SystemBusy           Code = 2
	NotSupported         Code = 3
	MessageIllegal       Code = 13
	ServiceNotAvailable  Code = 14
	NoPermission         Code = 16
	TopicNotExist        Code = 17
	TopicExistAlready    Code = 18
	PullNotFound         Code = 19
	PullRetryImmediately Code = 20
	PullOffsetMoved      Code = 21
	QueryNotFound        Code = 22
	SubscriptionBad      Code = 23
	SubscriptionMissing  Code = 24
	SubscriptionOld      Code = 25
	GroupNotExist        Code = 26
	InvalidParameter     Code = 29
	FlowControl          Code = 215
	IllegalOperation     Code = 604
)

// Bits of Header.Flag.
const (
	FlagResponse = 1
	FlagOneway   = 2
)

// Bits of the message sysFlag.
const (
	SysCompressed  = 0x1
	SysTranMask    = 0xC
	SysPrepared    = 0x4
	SysCommitted   = 0x8
	SysBornHostV6  = 0x10
	SysStoreHostV6 = 0x20
	SysNeedUnwrap  = 0x40
	SysInnerBatch  = 0x80
)

// Compression reads the compression type from bits 8 to 10 of a message sysFlag.
func Compression(sysFlag int32) int32 { return sysFlag >> 8 & 7 }

// Compression types; older clients write 0 for zlib.
const (
	CompressionLegacy = 0
	CompressionLZ4    = 1
	CompressionZstd   = 2
	CompressionZlib   = 3
)

// Bits of the pull request's sysFlag.
const (
	PullCommit       = 1
	PullSuspend      = 2
	PullSubscription = 4
	PullClassFilter  = 8
	PullLite         = 16
)
