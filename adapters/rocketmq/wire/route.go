package wire

import "strconv"

// Permission bits of a queue.
const (
	PermInherit = 1
	PermWrite   = 2
	PermRead    = 4
)

// Broker is one broker of a route.
type Broker struct {
	Cluster, Name, Address string
	BareKeys               bool // write broker ids without quotes, as fastjson does
}

// Route is where one topic's queues are.
type Route struct {
	Broker
	Queues int32
	Perm   int32
}

// Append writes the route in compact JSON: rocketmq-client-go v2 splits brokerAddrs on commas and colons and does not
// trim white space.
//
// Spec: RocketMQ TopicRouteData, QueueData, BrokerData@5.x
func (r *Route) Append(dst []byte) []byte {
	dst = append(dst, `{"brokerDatas":[`...)
	dst = r.Broker.append(dst)
	dst = append(dst, `],"filterServerTable":{},"queueDatas":[{"brokerName":`...)
	dst = appendQuoted(dst, r.Name)
	dst = append(dst, `,"perm":`...)
	dst = strconv.AppendInt(dst, int64(r.Perm), 10)
	dst = append(dst, `,"readQueueNums":`...)
	dst = strconv.AppendInt(dst, int64(r.Queues), 10)
	dst = append(dst, `,"topicSysFlag":0,"writeQueueNums":`...)
	dst = strconv.AppendInt(dst, int64(r.Queues), 10)
	return append(dst, `}]}`...)
}

func (b *Broker) append(dst []byte) []byte {
	dst = append(dst, `{"brokerAddrs":{`...)
	if b.BareKeys {
		dst = append(dst, '0')
	} else {
		dst = append(dst, '"', '0', '"')
	}
	dst = append(dst, ':')
	dst = appendQuoted(dst, b.Address)
	dst = append(dst, `},"brokerName":`...)
	dst = appendQuoted(dst, b.Name)
	dst = append(dst, `,"cluster":`...)
	dst = appendQuoted(dst, b.Cluster)
	return append(dst, `,"enableActingMaster":false}`...)
}

// AppendCluster writes the body that answers code 106.
//
// Spec: RocketMQ ClusterInfo@5.x
func (b *Broker) AppendCluster(dst []byte) []byte {
	dst = append(dst, `{"brokerAddrTable":{`...)
	dst = appendQuoted(dst, b.Name)
	dst = append(dst, ':')
	dst = b.append(dst)
	dst = append(dst, `},"clusterAddrTable":{`...)
	dst = appendQuoted(dst, b.Cluster)
	dst = append(dst, ':', '[')
	dst = appendQuoted(dst, b.Name)
	return append(dst, `]}}`...)
}
