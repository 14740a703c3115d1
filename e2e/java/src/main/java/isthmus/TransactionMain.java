package isthmus;

import java.nio.charset.StandardCharsets;
import java.util.TreeSet;
import java.util.Set;
import java.util.Collections;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** NAMESERVER TOPIC: transactions that are committed, rolled back and checked; delays by level and by timer; a recall. */
public final class TransactionMain {
    private static final Set<String> checked = Collections.synchronizedSet(new TreeSet<>());
    private static final CountDownLatch checks = new CountDownLatch(2);

    public static void main(String[] a) throws Exception {
        TransactionMQProducer p = new TransactionMQProducer("java-transactions");
        p.setNamesrvAddr(a[0]);
        p.setSendMsgTimeout(10_000);
        p.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                switch (text(m)) {
                    case "commit": return LocalTransactionState.COMMIT_MESSAGE;
                    case "rollback": return LocalTransactionState.ROLLBACK_MESSAGE;
                    default: return LocalTransactionState.UNKNOW;
                }
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt m) {
                if (checked.add(text(m))) {
                    checks.countDown();
                }
                return text(m).equals("checked") ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
            }
        });
        p.start();
        for (String body : new String[] {"commit", "rollback", "checked", "lost"}) {
            ok(p.sendMessageInTransaction(message(a[1], body), null));
        }
        Message level = message(a[1], "level");
        level.setDelayTimeLevel(1);
        ok(p.send(level));
        Message timer = message(a[1], "timer");
        timer.setDelayTimeMs(1500);
        ok(p.send(timer));
        Message never = message(a[1], "never");
        never.setDelayTimeSec(5);
        String handle = ok(p.send(never)).getRecallHandle();
        boolean recalled = p.recallMessage(a[1], handle) != null;
        boolean again = true;
        try {
            p.recallMessage(a[1], handle);
        } catch (MQBrokerException e) {
            again = false;
        }
        checks.await(30, TimeUnit.SECONDS);
        for (String body : checked) {
            System.out.println("checked " + body);
        }
        System.out.println("recalled " + recalled);
        System.out.println("recalled again " + again);
        Thread.sleep(1000); // the answers to the checks are one-way, and so are the last words of this program
        System.exit(0);
    }

    private static Message message(String topic, String body) {
        return new Message(topic, "java", "key", body.getBytes(StandardCharsets.UTF_8));
    }

    private static String text(Message m) {
        return new String(m.getBody(), StandardCharsets.UTF_8);
    }

    private static SendResult ok(SendResult r) {
        if (r.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException("send: " + r);
        }
        return r;
    }
}
