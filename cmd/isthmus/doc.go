// Command isthmus joins MQTT, Apache Pulsar and Apache RocketMQ clients over one engine of topics, partitions, keys and
// consumer groups. Start at main.go for the commands and at wire.go for a picture of the running system.
//
//	isthmus run     --config FILE                              start the gateway
//	isthmus check   FILE                                       read a configuration, print every fault with its line
//	isthmus explain --config FILE --mqtt-topic T --client C    where one MQTT publish would go
//	isthmus explain --config FILE --topic T --key K            under which MQTT topics a message would appear
//
// config.go is the configuration as users write it, config_file.go reads it with line numbers, config_validate.go says
// what is wrong with it. This package knows every room and no room knows it.
//
// Not supported yet: reload on SIGHUP, links, websocket and gRPC listeners, backlog limits, retention by size. A file that
// asks for one of them is refused.
package main
