package wire

// SendBack is the header of code 36. Its slices point into the frame.
type SendBack struct {
	Group, OriginTopic, OriginID []byte
	Phys                         int64
	Level                        int32 // delay level; 0: the server's choice, negative: to the dead letters
	MaxReconsume                 int32 // negative: the client did not say
}

// ParseSendBack reads the header.
//
// Spec: RocketMQ ConsumerSendMsgBackRequestHeader@5.x
func ParseSendBack(h *Header, b *SendBack) error {
	*b = SendBack{MaxReconsume: -1}
	var seen uint16
	for i := range h.Ext {
		key, v := h.Ext[i].Key, h.Ext[i].Value
		var err error
		switch string(key) {
		case "group":
			b.Group, seen = v, seen|1
		case "offset":
			b.Phys, err = parseInt("offset", v)
			seen |= 2
		case "delayLevel":
			b.Level, err = parseInt32("delayLevel", v)
			seen |= 4
		case "originTopic":
			b.OriginTopic = v
		case "originMsgId":
			b.OriginID = v
		case "maxReconsumeTimes":
			b.MaxReconsume, err = parseInt32("maxReconsumeTimes", v)
		}
		if err != nil {
			return err
		}
	}
	return missing(seen, "group", "offset", "delayLevel")
}
