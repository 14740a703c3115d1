"""The Python Pulsar client (the C++ one inside), for the Go tests that start it.

produce URL TOPIC COUNT KEYS: batched, keys key-0 ..., property n, event time 1600000000000 + i.
consume URL TOPIC SUBSCRIPTION TYPE COUNT SECONDS: one JSON object a line, acknowledged as the type asks for.
"""
import base64
import json
import sys
import time

import pulsar

QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


def produce(client, topic, count, keys):
    failed = []
    producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=20, block_if_queue_full=True)
    for i in range(count):
        producer.send_async(
            f"python {i}".encode(),
            lambda result, _id: failed.append(result) if result != pulsar.Result.Ok else None,
            partition_key=f"key-{i % keys}",
            properties={"n": str(i), "unit": "°C"},
            event_timestamp=1_600_000_000_000 + i,
        )
    producer.flush()
    producer.close()
    if failed:
        sys.exit(f"{len(failed)} sends failed: {failed[0]}")


def consume(client, topic, subscription, kind, count, seconds):
    consumer = client.subscribe(
        topic, subscription, consumer_type=getattr(pulsar.ConsumerType, kind), initial_position=pulsar.InitialPosition.Earliest
    )
    end = time.monotonic() + seconds
    got = 0
    while got < count and time.monotonic() < end:
        try:
            m = consumer.receive(timeout_millis=500)
        except pulsar.Timeout:
            continue
        got += 1
        mid = m.message_id()
        print(json.dumps({
            "key": m.partition_key(), "tag": m.properties().get("TAGS", ""), "body": base64.b64encode(m.data()).decode(),
            "partition": mid.partition(), "offset": mid.entry_id(), "publish_time": m.publish_timestamp(),
            "event_time": m.event_timestamp(), "props": m.properties(),
        }), flush=True)
        if kind in ("Exclusive", "Failover"):
            consumer.acknowledge_cumulative(m)
        else:
            consumer.acknowledge(m)
    consumer.close()


def main(args):
    client = pulsar.Client(args[1], operation_timeout_seconds=15, logger=QUIET)
    if args[0] == "produce":
        produce(client, args[2], int(args[3]), int(args[4]))
    else:
        consume(client, args[2], args[3], args[4], int(args[5]), float(args[6]))
    client.close()


main(sys.argv[1:])
