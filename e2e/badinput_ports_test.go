package e2e

import (
	"encoding/binary"

	"isthmus/e2e/clients"
)

// port is one listener with a good conversation, packet by packet.
type port struct {
	name, addr string
	talk       [][]byte
	huge       [][]byte // starts of frames that promise 2 GiB, or the most that the format can say
}

func ports(b *bed) []port {
	be := func(n uint32, rest ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, n), rest...) }
	connect := clients.AppendConnect(nil, "stranger", 5)
	publish := []byte{0x32, 15, 0, 7, 'b', 'a', 'd', '/', 'd', 'e', 'v', 0, 1, 0, 'x', 'y', 'z'} // id 1, no properties
	subscribe := []byte{0x82, 11, 0, 2, 0, 0, 5, 'b', 'a', 'd', '/', '+', 1}
	heartbeat := clients.Command{Code: 34, Opaque: 1, Body: []byte(
		`{"clientID":"127.0.0.1@bad","consumerDataSet":[{"groupName":"bad","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","subscriptionDataSet":[{"topic":"event","subString":"*","expressionType":"TAG","tagsSet":[],"codeSet":[],"subVersion":1}],"unitMode":false}],"producerDataSet":[]}`)}
	send := clients.Command{Code: 10, Opaque: 2, Body: []byte("hello"), ExtFields: map[string]string{
		"producerGroup": "bad", "topic": "event", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4", "queueId": "0",
		"sysFlag": "0", "bornTimestamp": "1700000000000", "flag": "0", "properties": "KEYS\x01k\x02", "reconsumeTimes": "0", "unitMode": "false"}}
	pull := clients.Command{Code: 11, Opaque: 3, ExtFields: map[string]string{
		"consumerGroup": "bad", "topic": "event", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "0",
		"commitOffset": "0", "suspendTimeoutMillis": "1000", "subscription": "*", "subVersion": "0", "expressionType": "TAG"}}
	route := clients.Command{Code: 105, Opaque: 1, ExtFields: map[string]string{"topic": "event"}}
	http := "POST /admin/v2/persistent/acme/out/x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
	return []port{
		{"mqtt", b.MQTT, [][]byte{connect, publish, subscribe, {0xc0, 0}},
			[][]byte{{0x10, 0xff, 0xff, 0xff, 0x7f}, append(connect[:len(connect):len(connect)], 0x30, 0xff, 0xff, 0xff, 0x7f, 0, 1, 'a')}},
		{"pulsar", b.Pulsar, [][]byte{clients.PulsarConnectFrame(), clients.PulsarProducerFrame(eventTest),
			clients.PulsarSendFrame(1, 0, []byte("hello")), clients.PulsarSubscribeFrame(eventTest, "bad")},
			[][]byte{be(1 << 31), be(0xffffffff, 0xff, 0xff, 0xff, 0xff), be(1000, 0x7f, 0xff, 0xff, 0xff)}},
		{"nameserver", b.NameServer, [][]byte{route.Append(nil)}, [][]byte{be(1 << 31), be(0xffffffff), be(100, 0, 0xff, 0xff, 0xff)}},
		{"broker", b.Broker, [][]byte{heartbeat.Append(nil), send.Append(nil), pull.Append(nil)},
			[][]byte{be(1 << 31), be(0xffffffff), be(100, 0, 0xff, 0xff, 0xff)}},
		{"http", b.HTTP, [][]byte{[]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), []byte(http)},
			[][]byte{[]byte("POST /admin/v2/x HTTP/1.1\r\nHost: x\r\nContent-Length: 2147483648\r\n\r\n{")}},
	}
}
