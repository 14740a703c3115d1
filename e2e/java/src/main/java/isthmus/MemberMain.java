package isthmus;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.MessageIdImpl;
import org.apache.pulsar.client.impl.TopicMessageIdImpl;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A member of a group until SIGTERM, or SIGKILL: PROTOCOL ADDRESS TOPIC GROUP MODE NAME HOLD-MS, as clients.MemberSpec says it.
 * It prints the lines of clients.RunMember.
 */
public final class MemberMain {
    private static final CountDownLatch term = new CountDownLatch(1);
    private static final CountDownLatch left = new CountDownLatch(1);

    public static void main(String[] a) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            term.countDown();
            try {
                left.await(20, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
        try {
            if (a[0].equals("pulsar")) {
                pulsar(a[1], a[2], a[3], a[4], a[5], Long.parseLong(a[6]));
            } else {
                rocketmq(a[1], a[2], a[3], a[4], a[5], Long.parseLong(a[6]));
            }
        } finally {
            left.countDown();
        }
    }

    private static void pulsar(String address, String topic, String group, String mode, String name, long hold) throws Exception {
        SubscriptionType type = mode.equals("KeyShared") ? SubscriptionType.Key_Shared : SubscriptionType.valueOf(mode);
        try (PulsarClient client = PulsarClient.builder().serviceUrl("pulsar://" + address).build();
                Consumer<byte[]> c = client.newConsumer().topic(topic).subscriptionName(group).subscriptionType(type).consumerName(name)
                        .receiverQueueSize(20).subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                        .isAckReceiptEnabled(true).acknowledgmentGroupTime(0, TimeUnit.MILLISECONDS).subscribe()) {
            System.out.println("ready");
            while (term.getCount() > 0) {
                Message<byte[]> m = c.receive(100, TimeUnit.MILLISECONDS);
                if (m == null) {
                    continue;
                }
                MessageIdImpl id = (MessageIdImpl) (m.getMessageId() instanceof MessageIdImpl ? m.getMessageId()
                        : ((TopicMessageIdImpl) m.getMessageId()).getInnerMessageId());
                work(id.getPartitionIndex(), id.getEntryId(), m.getData(), hold);
                c.acknowledge(m);
            }
        }
    }

    private static void rocketmq(String nameServer, String topic, String group, String mode, String name, long hold) throws Exception {
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(nameServer);
        c.setInstanceName(name);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        if (mode.equals("hash")) {
            c.setAllocateMessageQueueStrategy(new AllocateMessageQueueConsistentHash());
        }
        c.subscribe(topic, "*");
        c.registerMessageListener((MessageListenerOrderly) (ms, ctx) -> {
            for (MessageExt m : ms) {
                work(m.getQueueId(), m.getQueueOffset(), m.getBody(), hold);
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        c.start();
        System.out.println("ready");
        term.await();
        c.shutdown();
    }

    /** What an application does with a message. */
    private static void work(int partition, long offset, byte[] body, long hold) {
        step("take", partition, offset, body);
        try {
            Thread.sleep(hold);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        step("done", partition, offset, body);
    }

    private static synchronized void step(String what, int partition, long offset, byte[] body) {
        Instant now = Instant.now();
        long nanos = now.getEpochSecond() * 1_000_000_000L + now.getNano();
        System.out.println(what + " " + nanos + " " + partition + " " + offset + " " + new String(body, StandardCharsets.UTF_8));
    }
}
