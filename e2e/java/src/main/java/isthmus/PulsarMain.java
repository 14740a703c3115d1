package isthmus;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.KeySharedPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Range;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.MessageIdImpl;

/**
 * produce URL TOPIC COUNT KEYS (batched, keys key-0 …, event time 1600000000000 + i, property n), or
 * consume URL TOPIC SUBSCRIPTION TYPE COUNT SECONDS, where TYPE may be Key_Shared:FROM-TO for the consumer of these slots.
 */
public final class PulsarMain {
    public static void main(String[] a) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(a[1]).operationTimeout(15, TimeUnit.SECONDS).build()) {
            if (a[0].equals("produce")) {
                produce(client, a[2], Integer.parseInt(a[3]), Integer.parseInt(a[4]));
            } else {
                consume(client, a[2], a[3], a[4], Integer.parseInt(a[5]), Long.parseLong(a[6]));
            }
        }
    }

    private static void produce(PulsarClient client, String topic, int count, int keys) throws Exception {
        try (Producer<byte[]> p = client.newProducer().topic(topic).batcherBuilder(BatcherBuilder.DEFAULT)
                .batchingMaxPublishDelay(20, TimeUnit.MILLISECONDS).create()) {
            List<CompletableFuture<?>> sent = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                sent.add(p.newMessage().key("key-" + i % keys).property("n", "" + i).property("unit", "°C")
                        .eventTime(1_600_000_000_000L + i).value(("java " + i).getBytes(StandardCharsets.UTF_8)).sendAsync());
            }
            p.flush();
            for (CompletableFuture<?> f : sent) {
                f.get(20, TimeUnit.SECONDS);
            }
        }
    }

    private static void consume(PulsarClient client, String topic, String sub, String typeAndSlots, int count, long seconds)
            throws Exception {
        String[] of = typeAndSlots.split("[:-]");
        SubscriptionType type = SubscriptionType.valueOf(of[0]);
        ConsumerBuilder<byte[]> b = client.newConsumer().topic(topic).subscriptionName(sub).subscriptionType(type)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).isAckReceiptEnabled(true)
                .acknowledgmentGroupTime(0, TimeUnit.MILLISECONDS);
        if (of.length == 3) {
            b.keySharedPolicy(KeySharedPolicy.stickyHashRange().ranges(Range.of(Integer.parseInt(of[1]), Integer.parseInt(of[2]))));
        }
        try (Consumer<byte[]> c = b.subscribe()) {
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
            for (int n = 0; n < count && System.nanoTime() < end; ) {
                Message<byte[]> m = c.receive(500, TimeUnit.MILLISECONDS);
                if (m == null) {
                    continue;
                }
                n++;
                MessageIdImpl id = (MessageIdImpl) (m.getMessageId() instanceof MessageIdImpl ? m.getMessageId()
                        : ((org.apache.pulsar.client.impl.TopicMessageIdImpl) m.getMessageId()).getInnerMessageId());
                Out.message(m.getKey(), m.getProperty("TAGS"), m.getData(), id.getPartitionIndex(), id.getEntryId(),
                        m.getPublishTime(), m.getEventTime(), m.getProperties());
                if (type == SubscriptionType.Exclusive || type == SubscriptionType.Failover) {
                    c.acknowledgeCumulative(m);
                } else {
                    c.acknowledge(m);
                }
            }
        }
    }
}
