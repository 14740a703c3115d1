package isthmus;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;

/** produce NAMESERVER TOPIC COUNT KEYS (selected by hash of the key), or consume NAMESERVER TOPIC GROUP orderly|concurrently COUNT SECONDS [SQL92]; then "refused CODE" says that the expression was. */
public final class RocketMQMain {
    public static void main(String[] a) throws Exception {
        if (a[0].equals("produce")) {
            produce(a[1], a[2], Integer.parseInt(a[3]), Integer.parseInt(a[4]));
        } else {
            consume(a[1], a[2], a[3], a[4].equals("orderly"), Integer.parseInt(a[5]), Long.parseLong(a[6]),
                    a.length > 7 ? MessageSelector.bySql(a[7]) : MessageSelector.byTag("*"));
        }
        System.exit(0); // the client leaves threads behind
    }

    private static void produce(String nameServer, String topic, int count, int keys) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer("java-producers");
        p.setNamesrvAddr(nameServer);
        p.setSendMsgTimeout(10_000);
        p.start();
        for (int i = 0; i < count; i++) {
            String key = "key-" + i % keys;
            Message m = new Message(topic, "java", key, ("java " + i).getBytes(StandardCharsets.UTF_8));
            m.putUserProperty("n", "" + i);
            m.putUserProperty("unit", "°C");
            MessageAccessor.putProperty(m, MessageConst.PROPERTY_SHARDING_KEY, key);
            SendResult r = p.send(m, new SelectMessageQueueByHash(), key);
            if (r.getSendStatus() != SendStatus.SEND_OK) {
                throw new IllegalStateException("send " + i + ": " + r);
            }
        }
        p.shutdown();
    }

    private static void consume(String nameServer, String topic, String group, boolean orderly, int count, long seconds,
            MessageSelector selector) throws Exception {
        CountDownLatch left = new CountDownLatch(count);
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(group);
        c.setNamesrvAddr(nameServer);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        c.subscribe(topic, selector);
        if (orderly) {
            c.registerMessageListener((MessageListenerOrderly) (ms, ctx) -> {
                print(ms, left);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            c.registerMessageListener((MessageListenerConcurrently) (ms, ctx) -> {
                print(ms, left);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        try {
            c.start();
        } catch (MQClientException e) {
            System.out.println("refused " + e.getResponseCode());
            return;
        }
        left.await(seconds, TimeUnit.SECONDS);
        c.shutdown();
    }

    private static void print(List<MessageExt> ms, CountDownLatch left) {
        for (MessageExt m : ms) {
            Map<String, String> props = new HashMap<>(m.getProperties());
            String key = props.getOrDefault(MessageConst.PROPERTY_SHARDING_KEY, m.getKeys());
            Out.message(key, m.getTags(), m.getBody(), m.getQueueId(), m.getQueueOffset(), m.getBornTimestamp(), 0, props);
            left.countDown();
        }
    }
}
