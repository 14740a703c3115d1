package wire

// Pull is the header of codes 11 and 361. Its slices point into the frame.
type Pull struct {
	Group, Topic   []byte
	QueueID        int32
	Offset         int64
	MaxMessages    int32
	MaxBytes       int32
	SysFlag        int32
	Commit         int64
	SuspendMillis  int64
	Subscription   []byte
	SubVersion     int64
	ExpressionType []byte
}

// ParsePull reads the pull header.
//
// Spec: RocketMQ PullMessageRequestHeader@5.x
func ParsePull(h *Header, p *Pull) error {
	*p = Pull{}
	var seen uint16
	for i := range h.Ext {
		key, v := h.Ext[i].Key, h.Ext[i].Value
		var err error
		switch string(key) {
		case "consumerGroup":
			p.Group, seen = v, seen|1
		case "topic":
			p.Topic, seen = v, seen|2
		case "queueId":
			p.QueueID, err = parseInt32("queueId", v)
			seen |= 4
		case "queueOffset":
			p.Offset, err = parseInt("queueOffset", v)
			seen |= 8
		case "maxMsgNums":
			p.MaxMessages, err = parseInt32("maxMsgNums", v)
			seen |= 16
		case "sysFlag":
			p.SysFlag, err = parseInt32("sysFlag", v)
			seen |= 32
		case "commitOffset":
			p.Commit, err = parseInt("commitOffset", v)
		case "suspendTimeoutMillis":
			p.SuspendMillis, err = parseInt("suspendTimeoutMillis", v)
		case "subscription":
			p.Subscription = v
		case "subVersion":
			p.SubVersion, err = parseInt("subVersion", v)
		case "expressionType":
			p.ExpressionType = v
		case "maxMsgBytes":
			p.MaxBytes, err = parseInt32("maxMsgBytes", v)
		}
		if err != nil {
			return err
		}
	}
	if seen != 63 {
		return missing(seen, "consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag")
	}
	return nil
}

// Commit is the header of code 15.
type Commit struct {
	Group, Topic []byte
	QueueID      int32
	Offset       int64
}

// ParseCommit reads the header of an offset commit.
//
// Spec: RocketMQ UpdateConsumerOffsetRequestHeader@5.x
func ParseCommit(h *Header, c *Commit) error {
	*c = Commit{}
	var seen uint16
	for i := range h.Ext {
		key, v := h.Ext[i].Key, h.Ext[i].Value
		var err error
		switch string(key) {
		case "consumerGroup":
			c.Group, seen = v, seen|1
		case "topic":
			c.Topic, seen = v, seen|2
		case "queueId":
			c.QueueID, err = parseInt32("queueId", v)
			seen |= 4
		case "commitOffset":
			c.Offset, err = parseInt("commitOffset", v)
			seen |= 8
		}
		if err != nil {
			return err
		}
	}
	if seen != 15 {
		return missing(seen, "consumerGroup", "topic", "queueId", "commitOffset")
	}
	return nil
}
